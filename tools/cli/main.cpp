#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include "command.h"
#include "console.h"
#include "escape.h"
#include "handgrad/config/describe.h"
#include "handgrad/files/file_system.h"
#include "signals.h"
#include "terminal.h"

namespace handgrad::cli {
namespace {

constexpr const char* help =
    R"(handgrad trains small causal transformers on text, with every gradient written by hand.

usage: handgrad COMMAND [ARGUMENT]...

  train CONFIG           train a model; --resume auto continues a run that stopped
  generate CHECKPOINT    generate text with a trained model
  eval CHECKPOINT        loss, perplexity and bits per byte of a whole text
  audit CONFIG           prove the gradients of the model that a config trains
  inspect FILE           show the contents of a checkpoint; --verify checks it, --reseal seals an edited one
  bench CONFIG           time training steps on random tokens
  config explain         describe every key of a config
  config check FILE      show the errors of a config, or all resolved keys

handgrad COMMAND --help describes a command; handgrad --version prints the version. CHECKPOINT is a file, a link or a
run folder.
Exit codes: 0 done; 1 a check failed; 2 usage or config; 3 a number is not finite; 4 files and data; 5 out of memory;
129/130/138/143 stopped by SIGHUP/SIGINT/SIGUSR1/SIGTERM, a training run after it has saved a checkpoint; 141 done, but
the reader of standard output has closed it.
)";

struct Command {
  const char* name;
  int (*run)(const Arguments&);
};
constexpr Command commands[] = {{"train", run_train},  {"generate", run_generate}, {"eval", run_eval},
                                {"audit", run_audit},  {"bench", run_bench},       {"inspect", run_inspect},
                                {"config", run_config}};

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    fmt::print(stderr, "{}", help);
    return usage;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    fmt::print("{}", help);
    return done;
  }
  if (arguments[0] == "--version") {
    fmt::print("handgrad {}\n", HANDGRAD_VERSION);
    return done;
  }
  const auto* found =
      std::find_if(std::begin(commands), std::end(commands), [&](const Command& c) { return arguments[0] == c.name; });
  if (found == std::end(commands)) {
    std::vector<std::string> names;
    for (const Command& c : commands) names.emplace_back(c.name);
    const std::string nearest = config::nearest_name(arguments[0], names);
    throw UsageError(fmt::format("there is no command {}{}; see handgrad --help", quoted_excerpt(arguments[0]),
                                 nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  }
  return found->run({arguments.begin() + 1, arguments.end()});
}

int fail(const std::string& message, int code) {
  // A message may contain a file name, and a file name may contain control characters.
  say_error(fmt::format("{}error: {}\n", erase_line(STDERR_FILENO), escaped(message)));
  return code;
}

// Failed standard output is an error, except if the reader has closed the pipe (`| head`).
int output_failed(int error) {
  if (error == EPIPE) return reader_gone;
  return fail(fmt::format("cannot write to standard output: {}", files::describe_errno(error)), files_and_data);
}

int run(const Arguments& arguments) {
  try {
    const int code = dispatch(arguments);
    const int error = standard_output_error();
    return error == 0 || code != done ? code : output_failed(error);
  } catch (const NonFiniteError& error) {
    return fail(error.what(), non_finite);
  } catch (const DataError& error) {
    return fail(error.what(), files_and_data);
  } catch (const CheckpointError& error) {
    return fail(error.what(), files_and_data);
  } catch (const ResourceError& error) {
    return fail(error.what(), out_of_memory);
  } catch (const Error& error) {  // usage, config, ranges, shapes
    return fail(error.what(), usage);
  } catch (const std::system_error& error) {  // thrown by fmt::print
    return output_failed(error.code().value());
  } catch (const std::bad_alloc&) {
    return fail("memory: an allocation failed", out_of_memory);
  } catch (const std::exception& error) {  // thrown by another library
    return fail(error.what(), usage);
  }
}

// libgomp prints a warning about a malformed number every time it is loaded.
void drop_malformed_thread_count() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text != nullptr && !is_thread_list(text)) unsetenv("OMP_NUM_THREADS");
}

// Why waiting threads must not spin for long: by default, a thread of an OpenMP team that waits for the others spins
// for many milliseconds, longer than a time slice. If other programs use the cores, a spinning thread may occupy the
// core that the awaited thread needs, and training becomes tens of times slower. libgomp reads the spin count
// (GOMP_SPINCOUNT, OMP_WAIT_POLICY) only when a program is loaded, so this program executes itself again with a small
// count. Programs that embed the library set OMP_WAIT_POLICY=passive instead.
void spin_briefly(char** argv) {
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    if (std::getenv(name)) return;
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  // If the program was started through the dynamic loader, the path is the loader's: ld-linux-x86-64.so.2,
  // ld-musl-x86_64.so.1.
  if (error || self.filename().string().starts_with("ld-")) return;
  drop_malformed_thread_count();
  release_places();
  setenv("GOMP_SPINCOUNT", "2000", 1);
  execv(self.c_str(), argv);  // returns only on failure; then the default remains
}

}  // namespace
}  // namespace handgrad::cli

int main(int argc, char** argv) {
  using namespace handgrad::cli;
  if (argc > 0) spin_briefly(argv);
  open_standard_streams();
  watch_signals();
  // Beyond a limit on file sizes, and on a pipe without a reader, the write then returns an error.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  return run({argv + std::min(argc, 1), argv + argc});
}

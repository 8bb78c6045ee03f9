#include "support/command_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "support/training.h"

namespace handgrad::test {
namespace {

namespace files = std::filesystem;

constexpr uid_t nobody = 65534;

// Prepares the child process before it executes the program.
void become(const Launch& launch) {
  if (!launch.folder.empty() && ::chdir(launch.folder.c_str()) != 0) ::_exit(126);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  for (const std::string& entry : launch.environment) {
    const std::size_t equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  for (const int signal : launch.ignored_signals) ::signal(signal, SIG_IGN);
  if (launch.largest_file_bytes >= 0) {
    const rlimit limit = {static_cast<rlim_t>(launch.largest_file_bytes),
                          static_cast<rlim_t>(launch.largest_file_bytes)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (launch.ordinary_user && ::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(126);
}

void close_if_open(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

// Appends the available bytes; closes the file at its end.
void take(int& file, std::string& text) {
  char buffer[4096];
  const auto taken = ::read(file, buffer, sizeof buffer);
  if (taken > 0) text.append(buffer, static_cast<std::size_t>(taken));
  if (taken == 0 || (taken < 0 && errno != EINTR)) close_if_open(file);
}

}  // namespace

std::string Outcome::last_line() const {
  if (out.empty()) return {};
  const std::size_t before = out.rfind('\n', out.size() - 2);
  const std::string line = out.substr(before == std::string::npos ? 0 : before + 1);
  return line.substr(0, line.find('\n'));
}

Process::Process(const std::vector<std::string>& arguments, const Launch& launch) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  // Input is an unnamed file: reading it cannot block, and it leaves nothing behind.
  std::FILE* input = std::tmpfile();
  std::fwrite(launch.input.data(), 1, launch.input.size(), input);
  std::rewind(input);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(::fileno(input), STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    become(launch);
    std::vector<char*> argv{const_cast<char*>(HANDGRAD_BINARY)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(HANDGRAD_BINARY, argv.data());
    ::_exit(127);
  }
  std::fclose(input);
  ::close(out[1]), ::close(err[1]);
  out_ = out[0], err_ = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_if_open(out_), close_if_open(err_);
}

void Process::send(int signal) const { ::kill(pid_, signal); }

bool Process::read_some() {
  if (out_ < 0 && err_ < 0) return false;
  pollfd ends[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // poll() ignores a closed descriptor
  ::poll(ends, 2, -1);
  if (ends[0].revents != 0) take(out_, outcome_.out);
  if (ends[1].revents != 0) take(err_, outcome_.err);
  return true;
}

bool Process::wait_for(const std::string& text) {
  const auto there = [&] {
    return outcome_.out.starts_with(text) || outcome_.out.find("\n" + text) != std::string::npos;
  };
  while (!there()) {
    if (!read_some()) return false;
  }
  return true;
}

Outcome Process::wait() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

Process CommandLine::start(std::vector<std::string> arguments, Launch launch) const {
  if (launch.folder.empty()) launch.folder = path();
  const bool threads = std::any_of(launch.environment.begin(), launch.environment.end(),
                                   [](const std::string& e) { return e.starts_with("OMP_NUM_THREADS="); });
  if (!threads) launch.environment.push_back("OMP_NUM_THREADS=1");
  return Process(arguments, launch);
}

Outcome CommandLine::run(std::vector<std::string> arguments, Launch launch) const {
  return start(std::move(arguments), std::move(launch)).wait();
}

int CommandLine::shell(const std::string& lines) const {
  write("script", "cd '" + path() + "'\nset -o pipefail\nexport OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive\n" +
                      "h='" HANDGRAD_BINARY "'\n" + lines + "\n");
  const int status = std::system(("bash '" + (folder_ / "script") + "'").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void CommandLine::write(const std::string& name, const std::string& content) const {
  files::create_directories(files::path(folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary) << content;
}

std::string CommandLine::read(const std::string& name) const {
  std::ifstream file(folder_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool CommandLine::exists(const std::string& name) const { return files::exists(files::symlink_status(folder_ / name)); }

std::string CommandLine::everything() const {
  std::vector<std::string> entries;
  const auto skip = files::directory_options::skip_permission_denied;
  for (const auto& entry : files::recursive_directory_iterator(path(), skip)) {
    const std::string name = files::relative(entry.path(), path()).string();
    if (entry.is_symlink()) {
      entries.push_back(name + " -> " + files::read_symlink(entry.path()).string() + "\n");
    } else {
      entries.push_back(name + "\n" + (entry.is_regular_file() ? read(name) : ""));
    }
  }
  std::sort(entries.begin(), entries.end());
  std::string all;
  for (const std::string& entry : entries) all += entry;
  return all;
}

void CommandLine::prepare(const std::string& more) const {
  write("text.txt", sample_text(400));
  write("tiny.toml",
        "[data]\nfiles = [\"text.txt\"]\n"
        "[model]\nn_layers = 1\nn_heads = 2\nd_model = 16\nd_ff = 24\ncontext = 8\n"
        "[train]\nsteps = 6\nbatch_size = 4\n"
        "[schedule]\nwarmup_steps = 2\n[eval]\nevery = 3\nbatches = 2\n[log]\nevery = 1\n" +
            more);
}

}  // namespace handgrad::test

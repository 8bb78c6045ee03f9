#include <fmt/format.h>

#include "command.h"
#include "console.h"
#include "escape.h"
#include "handgrad/config/split.h"
#include "handgrad/core/gemm.h"
#include "handgrad/files/file_system.h"
#include "handgrad/generate/generator.h"
#include "handgrad/train/memory.h"
#include "handgrad/train/run.h"
#include "progress.h"
#include "signals.h"
#include "train_setup.h"

namespace handgrad::cli {
namespace {

void print_start(const TrainPlan& plan, const MemoryEstimate& memory, const std::string& folder, int threads) {
  const Config& config = plan.config;
  say(fmt::format("{}: {} parameters, vocabulary {} ({}), {} training and {} validation tokens\n", folder,
                  CausalLm<float>::count_parameters(config.model), config.model.vocab_size,
                  plan.source.tokenizer().name(), plan.source.train().size(), plan.source.validation().size()));
  say(fmt::format("{}, {}, seed {}, about {} of memory\n", counted(threads, "thread"), gemm::kernel_name(),
                  config.train.seed, megabytes(memory.peak())));
  for (const std::string& line : plan.source.report()) say(escaped(line) + "\n");
  if (plan.loop().step > 0) say(fmt::format("continuing after step {}\n", plan.loop().step));
}

// The prompt of samples. Checked before the first step, since an error at the first sample would be late.
std::string sample_prompt(const Config& config, const Tokenizer& tokenizer) {
  const std::string& prompt = config.sample.prompt;
  if (prompt == SampleConfig{}.prompt) return default_prompt(tokenizer);
  try {
    tokenizer.encode(prompt);
  } catch (const DataError& error) {
    throw DataError(fmt::format("sample.prompt: {}", error.what()));
  }
  return prompt;
}

// A sample of the model's text, escaped to one line.
std::string sample_line(const Trainer& trainer) {
  const SampleConfig& sample = trainer.config().sample;
  std::string text;
  TextOptions options;
  options.tokens = sample.tokens;
  options.sampling.temperature = sample.temperature;
  options.sampling.seed = static_cast<std::uint64_t>(trainer.loop().step);
  generate_text(trainer.model(), trainer.source().tokenizer(),
                sample_prompt(trainer.config(), trainer.source().tokenizer()), options, [&](std::string_view piece) {
                  text += escaped(piece);
                  return !StopRequest::token().stop_requested();
                });
  return fmt::format("step {}  sample: {}", trainer.loop().step, text);
}

bool out_of_steps(const Config& config, const LoopState& loop) { return loop.step >= config.train.steps; }

// How a finished run can be continued.
std::string how_to_continue(const Config& config, const LoopState& loop) {
  if (out_of_steps(config, loop)) return "--set train.steps=N extends it";
  return fmt::format("--set eval.patience=0 continues to step {}", config.train.steps);
}

std::string finished_text(const Config& config, const LoopState& loop) {
  if (out_of_steps(config, loop)) return fmt::format("finished at step {}", loop.step);
  return fmt::format("stopped at step {} by eval.patience = {}", loop.step, config.eval.patience);
}

void print_end(Progress& progress, const Run& run) {
  const LoopState& loop = run.trainer().loop();
  const Config& config = run.trainer().config();
  if (loop.best_step != loop.step && loop.best_step > 0) {
    progress.line(fmt::format("{}/checkpoints/best.h5 is the checkpoint of step {}; handgrad generate {} uses the last",
                              run.folder(), loop.best_step, run.folder()));
  }
  progress.line(fmt::format("{}; best validation loss {:.4f} at step {}{}", finished_text(config, loop), loop.best_loss,
                            loop.best_step, out_of_steps(config, loop) ? "" : "; " + how_to_continue(config, loop)));
}

void train_until_stopped(Run& run, Progress& progress) {
  const std::stop_token stop = StopRequest::token();
  const Index sample_every = run.trainer().config().sample.every;
  while (!run.done() && !stop.stop_requested()) {
    run.advance(stop);
    if (sample_every > 0 && run.trainer().loop().step % sample_every == 0 && !stop.stop_requested()) {
      progress.busy("writing a sample");
      const std::string sample = sample_line(run.trainer());
      progress.busy("");
      progress.line(sample);
    }
  }
}

// A run without updates to make: reports how to continue it. Making its trainer refuses a file or text that does not
// fit.
int report_finished(TrainPlan plan, const std::string& folder, bool quiet) {
  const Trainer trainer = make_trainer(std::move(plan));
  if (!quiet) {
    say(fmt::format("{}: {}; {}\n", folder, finished_text(trainer.config(), trainer.loop()),
                    how_to_continue(trainer.config(), trainer.loop())));
  }
  return done;
}

// Checks the prompt of samples and the memory, and prints the start of the run.
void announce(const TrainPlan& plan, const std::string& folder, int threads, bool quiet) {
  if (plan.config.sample.every > 0) sample_prompt(plan.config, plan.source.tokenizer());
  const MemoryEstimate memory = estimate_memory(plan.config, plan.source.text_bytes(), plan.source.token_count());
  if (!quiet) print_start(plan, memory, folder, threads);
  const std::string split = split_note(plan.config);
  if (!split.empty() && !quiet) note("note: " + split);
  check_memory(memory, plan.config, plan.checkpoint ? plan.checkpoint->container().size_bytes() : 0);
}

int train(const TrainRequest& request, int threads) {
  const std::string folder = output_folder(request);
  TrainPlan plan = plan_training(request, folder);
  if (is_done(plan.config, plan.loop()) && !plan.loop().evaluation_pending) {
    return report_finished(std::move(plan), folder, request.quiet);
  }
  announce(plan, folder, threads, request.quiet);
  Trainer trainer = make_trainer(std::move(plan));
  if (request.overwrite) clear_run_folder(posix_files(), folder);
  const StopRequest request_to_stop(StopRequest::Acknowledge::on_standard_error);
  Run run(std::move(trainer), folder);
  for (const std::string& path : run.set_aside()) note("note: renamed to " + path);
  Progress progress(run.trainer().config(), run.trainer().loop().step, request.quiet);
  run.trainer().observe(progress);
  train_until_stopped(run, progress);
  if (run.done()) {
    print_end(progress, run);
    return done;
  }
  run.save();
  progress.line(fmt::format("stopped after step {}; continue with: handgrad train --resume {}",
                            run.trainer().loop().step, run.folder()));
  return 128 + StopRequest::received();
}

}  // namespace

int run_train(const Arguments& arguments) {
  Options options("train", "Trains a model from a config file, in a run folder.", "[CONFIG]");
  options.list("set", "KEY=VALUE", "Set a key of the config: model.dropout=0.1; may be repeated");
  options.value("out", "DIR", "Run folder (default: runs/<name of the config>)");
  options.value("resume", "auto|PATH",
                "Continue a run: auto (the run folder's newest checkpoint, or from the start), a run folder or a "
                "checkpoint");
  options.value("init", "CHECKPOINT",
                "Start from a checkpoint's weights, tokenizer and model keys, with a new optimiser (fine-tuning)");
  options.flag("overwrite", "Replace the run in the folder");
  options.positional({"config"});
  const Values values = options.parse(arguments);
  if (values.help()) return done;
  const ThreadScope scope(wanted_threads(values));
  return train(read_train_request(values), thread_count());
}

}  // namespace handgrad::cli

#include <handgrad/generate/generator.h>
#include <handgrad/train/trainer.h>

#include <cstdio>
#include <string>

// An example of a program that embeds handgrad: it trains a tiny model on a text in memory and generates text.
int main() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the fox saw a hen. ";

  handgrad::Config config;
  config.model.n_layers = 1, config.model.n_heads = 2, config.model.d_model = 32, config.model.context = 16;
  config.train.steps = 150, config.schedule.warmup_steps = 10;
  config.optimizer.lr = 1e-2;
  handgrad::Trainer trainer(config, handgrad::DataSource::from_text(config, text));
  double loss = 0.0;
  while (!trainer.done()) loss = trainer.step().loss;
  trainer.save("model.h5");

  std::string written;
  handgrad::TextOptions options;
  options.tokens = 19, options.sampling.temperature = 0.0;
  handgrad::generate_text(trainer.model(), trainer.source().tokenizer(), "the fox saw ", options,
                          [&](std::string_view piece) { return written += piece, true; });
  std::printf("loss %.4f: %s\n", loss, written.c_str());
  return written == "a hen. the fox saw " ? 0 : 1;
}

#include <fmt/format.h>

#include "command.h"
#include "handgrad/config/describe.h"
#include "handgrad/config/parse.h"
#include "handgrad/config/validate.h"

namespace handgrad::cli {

int run_config(const Arguments& arguments) {
  cxxopts::Options options =
      make_options("config", "Explains the keys of a config, or checks a file.", "explain [KEY | TABLE] | check FILE");
  options.add_options()("markdown", "explain: as Markdown")("set", "check: set a key; may be repeated",
                                                            cxxopts::value<std::vector<std::string>>(), "KEY=VALUE")(
      "what", "", cxxopts::value<std::string>())("file", "", cxxopts::value<std::string>());
  options.parse_positional({"what", "file"});
  const Parsed parsed = parse(options, "config", arguments);
  if (parsed.help) return done;
  const std::string what =
      required_argument(parsed.values, "what", "config: explain, or check FILE; see handgrad config --help");
  if (what == "explain") {
    const std::string only = parsed.values.count("file") > 0 ? parsed.values["file"].as<std::string>() : "";
    if (parsed.values.count("markdown") > 0 && !only.empty()) {
      throw UsageError(fmt::format("config explain --markdown: unexpected argument \"{}\"", only));
    }
    fmt::print("{}",
               only.empty() && parsed.values.count("markdown") > 0 ? explain_config_markdown() : explain_config(only));
    return done;
  }
  if (what != "check") throw UsageError(fmt::format("config: explain, or check FILE; got \"{}\"", what));
  const std::string file = required_argument(parsed.values, "file", "config check: a FILE is needed");
  std::vector<std::string> overrides;
  if (parsed.values.count("set") > 0) overrides = parsed.values["set"].as<std::vector<std::string>>();
  const ParsedConfig config = load_config(file, overrides);
  validate(config.config, file);
  fmt::print("{}", to_toml(resolve(config.config)));
  return done;
}

}  // namespace handgrad::cli

#include "handgrad/generate/generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "handgrad/core/errors.h"
#include "handgrad/files/utf8.h"

namespace handgrad {

Generator::Generator(const CausalLm<float>& model, const SamplingOptions& options)
    : model_(model), options_(options), cache_(model.config()) {
  validate(options);
}

Index Generator::prompt(std::span<const TokenId> tokens) {
  if (tokens.empty()) throw DataError("prompt: must have at least one token, got none");
  const auto context = static_cast<std::size_t>(model_.config().context);
  const std::size_t cropped = tokens.size() > context ? tokens.size() - context : 0;
  window_.clear();
  cache_.truncate(0);
  drawn_ = 0;
  feed(tokens.subspan(cropped));
  return static_cast<Index>(cropped);
}

TokenId Generator::next() {
  const FloatEnvironment environment;
  if (window_.empty()) throw DataError("generator: next() needs a prompt; call prompt() first");
  const TokenId token = sample_token(logits_, options_, drawn_++);
  if (context_is_full()) {
    const std::size_t keep = std::max<std::size_t>(1, window_.size() / 2);
    std::vector<TokenId> rest(window_.end() - static_cast<std::ptrdiff_t>(keep) + 1, window_.end());
    rest.push_back(token);
    window_.clear();
    cache_.truncate(0);
    feed(rest);
  } else {
    feed({&token, 1});
  }
  return token;
}

void Generator::feed(std::span<const TokenId> tokens) {
  const FloatEnvironment environment;
  tape_.reset();
  const Var<float> logits = model_.last_logits(tape_, {tokens}, {.cache = &cache_});
  logits_.assign(logits.view().data, logits.view().data + logits.size());
  window_.insert(window_.end(), tokens.begin(), tokens.end());
}

namespace {

// Passes text on, but holds back an end that may be the beginning of the stop string.
class StopFilter {
 public:
  StopFilter(std::string stop, const std::function<bool(std::string_view)>& sink)
      : stop_(std::move(stop)), sink_(sink) {}

  // Returns false when the text has ended.
  bool push(std::string_view piece) {
    held_ += piece;
    if (stop_.empty()) return release(held_.size());
    const std::size_t found = held_.find(stop_);
    if (found != std::string::npos) {
      release(found);
      held_.clear();
      stopped_ = true;
      return false;
    }
    return release(held_.size() - overlap());
  }
  bool flush() { return release(held_.size()); }
  // Has the stop string been found?
  bool stopped() const { return stopped_; }

 private:
  // The length of the longest end of held_ that is a beginning of the stop string.
  std::size_t overlap() const {
    for (std::size_t n = std::min(held_.size(), stop_.size() - 1); n > 0; --n) {
      if (held_.compare(held_.size() - n, n, stop_, 0, n) == 0) return n;
    }
    return 0;
  }
  bool release(std::size_t bytes) {
    const bool wanted = bytes == 0 || sink_(std::string_view(held_).substr(0, bytes));
    held_.erase(0, bytes);
    return wanted;
  }

  std::string stop_;
  std::string held_;
  bool stopped_ = false;
  const std::function<bool(std::string_view)>& sink_;
};

}  // namespace

std::string default_prompt(const Tokenizer& tokenizer) {
  try {
    tokenizer.encode("\n");
    return "\n";
  } catch (const DataError&) {
    return std::string(tokenizer.token_bytes(0));
  }
}

TextReport generate_text(const CausalLm<float>& model, const Tokenizer& tokenizer, const std::string& prompt,
                         const TextOptions& options, const std::function<bool(std::string_view)>& sink) {
  if (options.tokens < 0) throw RangeError(fmt::format("tokens: must be at least 0, got {}", options.tokens));
  if (!sink) throw Error("generate_text: the sink must not be empty");
  if (tokenizer.vocab_size() != model.config().vocab_size) {
    throw RangeError(
        fmt::format("generate_text: the tokenizer must match the model, got {} tokens for a vocabulary of {}",
                    tokenizer.vocab_size(), model.config().vocab_size));
  }
  TextReport report;
  Generator generator(model, options.sampling);
  const std::vector<TokenId> tokens = tokenizer.encode(prompt);
  report.prompt_tokens = std::ssize(tokens);
  report.prompt_tokens_cropped = generator.prompt(tokens);
  files::Utf8Stream characters;
  StopFilter filter(options.stop, sink);
  const auto ended = [&](bool wanted) {
    if (!wanted) report.end = filter.stopped() ? TextEnd::stop_text : TextEnd::sink;
    return !wanted;
  };
  while (report.tokens < options.tokens) {
    if (options.stop_at_context && generator.context_is_full()) {
      report.end = TextEnd::context_full;
      break;
    }
    const TokenId token = generator.next();
    ++report.tokens;
    if (ended(filter.push(characters.push(tokenizer.token_bytes(token))))) return report;
  }
  if (!ended(filter.push(characters.flush()))) ended(filter.flush());
  return report;
}

}  // namespace handgrad

#include "handgrad/train/data_source.h"

#include <fmt/format.h>

#include "handgrad/core/errors.h"
#include "handgrad/core/hash.h"
#include "handgrad/text/corpus.h"
#include "handgrad/text/windows.h"

namespace handgrad {
namespace {

using SharedTokens = std::shared_ptr<const std::vector<TokenId>>;

// `source` says in messages where the text comes from.
SharedTokens encode(const Tokenizer& tokenizer, std::string_view text, std::string_view source) {
  try {
    return std::make_shared<const std::vector<TokenId>>(tokenizer.encode(text));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", source, error.what()));
  }
}

std::shared_ptr<const Tokenizer> tokenizer_for(const Config& config, std::string_view text) {
  if (config.tokenizer.kind == TokenizerKind::byte) return make_byte_tokenizer();
  return make_char_tokenizer(text);
}

// Characters of files are checked file by file, so that a fault is named with the file that has it.
std::string read_text(const std::vector<std::string>& paths, bool characters) {
  Corpus corpus = read_corpus(paths);
  if (characters) check_utf8(corpus);
  return std::move(corpus.text);
}

std::uint64_t fingerprint_of(const TokenSplit& split) {
  return hash64(std::as_bytes(split.validation), hash64(std::as_bytes(split.train)));
}

}  // namespace

DataSource DataSource::load(const Config& config, std::shared_ptr<const Tokenizer> tokenizer) {
  if (config.data.files.empty()) throw ConfigError("data.files: at least one file or folder is needed, got none");
  const bool characters = tokenizer ? tokenizer->name() == "char" : config.tokenizer.kind == TokenizerKind::character;
  const std::string text = read_text(config.data.files, characters);
  if (config.data.validation_files.empty()) return from_text(config, text, std::move(tokenizer));
  DataSource source;
  source.tokenizer_ = tokenizer ? std::move(tokenizer) : tokenizer_for(config, text);
  source.tokens_ = encode(*source.tokenizer_, text, "data.files");
  source.validation_tokens_ =
      encode(*source.tokenizer_, read_text(config.data.validation_files, characters), "data.validation_files");
  const TokenSplit split = split_as_given(*source.tokens_, *source.validation_tokens_, config.model.context);
  source.train_ = split.train;
  source.validation_ = split.validation;
  source.fingerprint_ = fingerprint_of(split);
  return source;
}

DataSource DataSource::from_text(const Config& config, std::string_view text,
                                 std::shared_ptr<const Tokenizer> tokenizer) {
  DataSource source;
  source.tokenizer_ = tokenizer ? std::move(tokenizer) : tokenizer_for(config, text);
  source.tokens_ = encode(*source.tokenizer_, text, "data.files");
  const TokenSplit split = split_by_fraction(*source.tokens_, config.data.validation_fraction, config.model.context);
  source.train_ = split.train;
  source.validation_ = split.validation;
  source.fingerprint_ = fingerprint_of(split);
  return source;
}

const Tokenizer& DataSource::tokenizer() const {
  if (!tokenizer_) throw DataError("data source: it holds nothing; load() and from_text() make one");
  return *tokenizer_;
}

}  // namespace handgrad

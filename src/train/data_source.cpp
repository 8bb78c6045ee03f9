#include "handgrad/train/data_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "handgrad/core/errors.h"
#include "handgrad/files/hash.h"
#include "handgrad/text/corpus.h"
#include "handgrad/text/unknown_characters.h"
#include "handgrad/text/windows.h"
#include "handgrad/train/memory.h"

namespace handgrad {
namespace {

using SharedTokens = std::shared_ptr<const std::vector<TokenId>>;

SharedTokens encode(const Tokenizer& tokenizer, const Corpus& corpus, std::string_view key) {
  return std::make_shared<const std::vector<TokenId>>(encode_corpus(tokenizer, corpus, key));
}

std::shared_ptr<const Tokenizer> tokenizer_for(const Config& config, std::string_view text) {
  if (config.tokenizer.kind == TokenizerKind::byte) return make_byte_tokenizer();
  return make_char_tokenizer(text);
}

// The files of a key. Messages contain the key, since a config may have paths of another machine.
Corpus read_part(const std::vector<std::string>& paths, std::string_view key, bool characters) {
  try {
    check_memory_for_text(corpus_size_bytes(paths));
    Corpus corpus = read_corpus(paths);
    if (characters) check_utf8(corpus);
    return corpus;
  } catch (const DataError& error) {
    const std::string what = error.what();
    if (!what.starts_with("no such file")) throw;
    throw DataError(fmt::format("{}; --set {}='[\"FILE\"]' names another", what, key));
  }
}

std::vector<std::string> report_of(const Corpus& corpus, std::string_view key) {
  std::vector<std::string> report = text_notes(corpus);
  for (std::string& line : report) line = fmt::format("note: {}", line);
  report.insert(report.begin(), fmt::format("{}: {}", key, describe_files(corpus)));
  return report;
}

std::uint64_t fingerprint_of(const TokenSplit& split) {
  return files::hash64(std::as_bytes(split.validation), files::hash64(std::as_bytes(split.train)));
}

}  // namespace

DataSource DataSource::load(const Config& config, std::shared_ptr<const Tokenizer> tokenizer) {
  if (config.data.files.empty()) throw ConfigError("data.files: at least one file or folder is needed, got none");
  const bool characters = tokenizer ? tokenizer->name() == "char" : config.tokenizer.kind == TokenizerKind::character;
  DataSource source;
  std::vector<CorpusFile> training_files;
  {
    const Corpus corpus = read_part(config.data.files, "data.files", characters);
    training_files = corpus.files;
    source.report_ = report_of(corpus, "data.files");
    source.text_bytes_ = std::ssize(corpus.text);
    source.tokenizer_ = tokenizer ? std::move(tokenizer) : tokenizer_for(config, corpus.text);
    source.tokens_ = encode(*source.tokenizer_, corpus, "data.files");
  }
  if (config.data.validation_files.empty()) {
    source.split(split_by_fraction(*source.tokens_, config.data.validation_fraction, config.model.context));
    return source;
  }
  const Corpus corpus = read_part(config.data.validation_files, "data.validation_files", characters);
  source.text_bytes_ = std::max(source.text_bytes_, std::ssize(corpus.text));
  const std::vector<std::string> report = report_of(corpus, "data.validation_files");
  source.report_.insert(source.report_.end(), report.begin(), report.end());
  for (const std::string& path : files_in_both(training_files, corpus.files)) {
    source.report_.push_back(fmt::format(
        "note: {} is training text and validation text: the validation loss does not measure generalisation", path));
  }
  source.validation_tokens_ = encode(*source.tokenizer_, corpus, "data.validation_files");
  source.split(split_as_given(*source.tokens_, *source.validation_tokens_, config.model.context));
  return source;
}

DataSource DataSource::from_text(const Config& config, std::string_view text,
                                 std::shared_ptr<const Tokenizer> tokenizer) {
  DataSource source;
  source.text_bytes_ = std::ssize(text);
  source.tokenizer_ = tokenizer ? std::move(tokenizer) : tokenizer_for(config, text);
  source.tokens_ = std::make_shared<const std::vector<TokenId>>(encode_text(*source.tokenizer_, text, "data.files"));
  source.split(split_by_fraction(*source.tokens_, config.data.validation_fraction, config.model.context));
  return source;
}

void DataSource::split(const TokenSplit& parts) {
  train_ = parts.train;
  validation_ = parts.validation;
  fingerprint_ = fingerprint_of(parts);
}

const Tokenizer& DataSource::tokenizer() const {
  if (!tokenizer_) throw DataError("data source: it is empty; load() and from_text() make one");
  return *tokenizer_;
}

}  // namespace handgrad

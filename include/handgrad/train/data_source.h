#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handgrad/config/config.h"
#include "handgrad/text/tokenizer.h"
#include "handgrad/text/windows.h"

namespace handgrad {

/// The data of a run: tokens for training and validation, and their tokenizer. Copies share the tokens.
class DataSource {
 public:
  /// Reads the files of the config. The tokenizer is the given one (of a checkpoint), else one of the kind in the
  /// config; for char its vocabulary is made from the training text. Throws DataError for files or text that cannot be
  /// used, for a part that is shorter than the context, and for a character outside the given vocabulary;
  /// ResourceError, before reading, for a text that does not fit in memory.
  static DataSource load(const Config& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr);
  /// The same from a text in memory, split by data.validation_fraction.
  static DataSource from_text(const Config& config, std::string_view text,
                              std::shared_ptr<const Tokenizer> tokenizer = nullptr);

  /// Lines for the user: the files that were read and their sizes, other files in the folders, and notes on the texts.
  /// Empty for a text in memory.
  const std::vector<std::string>& report() const { return report_; }

  /// Throws DataError for an empty source.
  const Tokenizer& tokenizer() const;
  std::span<const TokenId> train() const { return train_; }
  std::span<const TokenId> validation() const { return validation_; }
  /// The number of tokens of both parts.
  Index token_count() const { return static_cast<Index>(train_.size() + validation_.size()); }
  /// Bytes of the text that the tokens came from.
  Index text_bytes() const { return text_bytes_; }
  /// A hash of both parts. A run can be resumed only if it is unchanged.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  void split(const TokenSplit& parts);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const std::vector<TokenId>> tokens_, validation_tokens_;
  std::span<const TokenId> train_, validation_;
  std::uint64_t fingerprint_ = 0;
  Index text_bytes_ = 0;
  std::vector<std::string> report_;
};

}  // namespace handgrad

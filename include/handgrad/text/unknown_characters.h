#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/text/corpus.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// The tokens of a text. Throws DataError if characters are missing from the vocabulary; the message lists all of them,
/// how often each occurs, where it occurs first (file, line and character in the line, from 1), and the remedy.
/// `source` is the beginning of the message ("data.files").
std::vector<TokenId> encode_corpus(const Tokenizer& tokenizer, const Corpus& corpus, std::string_view source);

/// The same for a text that is not a file. Places are lines and characters of the text.
std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text, std::string_view source);

namespace text {

/// The composed letter of a base letter and a combining mark ('e' and U+0301: U+00E9), among Latin-1 and Latin
/// Extended-A; 0 if there is none.
std::uint32_t composed_letter(std::uint32_t base, std::uint32_t mark);

}  // namespace text

}  // namespace handgrad

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "handgrad/text/corpus.h"
#include "handgrad/text/tokenizer.h"

namespace handgrad {

/// Tokens of a text. A text that the vocabulary cannot write is one DataError with all of the characters that are
/// missing: how often each occurs, where it occurs first (file, line, character in the line, both from 1), and what to
/// do. `source` opens the message ("data.files").
std::vector<TokenId> encode_corpus(const Tokenizer& tokenizer, const Corpus& corpus, std::string_view source);

/// The same for a text that comes from no file: places are lines and characters of the text.
std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text, std::string_view source);

/// The composed letter that a base letter and a combining mark make ('e' and U+0301: U+00E9), among those of Latin-1
/// and Latin Extended-A; 0 if there is none.
std::uint32_t composed_letter(std::uint32_t base, std::uint32_t mark);

}  // namespace handgrad

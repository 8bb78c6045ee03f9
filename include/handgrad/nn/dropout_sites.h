#pragma once

#include <cstdint>

#include "handgrad/core/types.h"

namespace handgrad {

/// The places of dropout in a model. Each has random numbers of its own.
enum class DropoutPlace : std::uint32_t { attention, attention_output, feed_forward_output };

inline constexpr std::uint32_t embedding_dropout_site = 0;

inline std::uint32_t dropout_site(Index layer, DropoutPlace place) {
  return 1 + static_cast<std::uint32_t>(layer) * 3 + static_cast<std::uint32_t>(place);
}

}  // namespace handgrad

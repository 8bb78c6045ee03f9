#pragma once

namespace handgrad {

// The choices of a config that are implemented outside of config/ and nn/. Choices that only config/ and nn/ read are
// in config/config.h.

/// The pairs of features that RoPE rotates: (2i, 2i+1), or (i, i + D/2).
enum class RopePairing { adjacent, half };

/// The learning rate after the warmup (optim/schedule.h).
enum class ScheduleKind { constant, linear, cosine, warmup_stable_decay };

/// The order of the windows of a text (text/windows.h).
enum class DataOrder { epoch, random };

}  // namespace handgrad

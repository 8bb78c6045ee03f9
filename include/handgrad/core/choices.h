#pragma once

namespace handgrad {

// Choices that a config names and that an algorithm in another folder implements. Each exists once, here; choices that
// only a config and the model read are in config/config.h.

/// The pairs of features that RoPE rotates: (2i, 2i+1), or (i, i + D/2).
enum class RopePairing { adjacent, half };

/// The course of the learning rate after the warmup: see optim/schedule.h.
enum class ScheduleKind { constant, linear, cosine, warmup_stable_decay };

/// The order of a text's windows: see text/windows.h.
enum class DataOrder { epoch, random };

}  // namespace handgrad

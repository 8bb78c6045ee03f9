#pragma once

#include <gtest/gtest.h>

#include "accuracy/error_meter.h"

namespace handgrad::test {

/// The rows of docs/proof.md's table.
std::string to_markdown(const std::vector<Accuracy>& table);

/// Measures and holds the worst errors against docs/proof.md: every row is there, and none is worse than it says by
/// more than a quarter (another machine's exp and product differ a little). Returns what was measured.
std::vector<Accuracy> expect_documented(Index inputs);

}  // namespace handgrad::test

#pragma once

#include <gtest/gtest.h>

#include "accuracy/error_meter.h"

namespace handgrad::test {

/// The table of docs/proof.md in Markdown.
std::string to_markdown(const std::vector<Accuracy>& table);

/// Measures the largest errors and compares them with docs/proof.md: every row must be there, and no error may exceed
/// the stated one by more than a quarter (exp and products differ a little between machines). Returns the measured
/// errors.
std::vector<Accuracy> expect_documented(Index inputs);

}  // namespace handgrad::test

#pragma once

#include <gtest/gtest.h>

#include "accuracy/error_meter.h"

namespace handgrad::test {

/// The rows of the table in docs/proof.md.
std::string to_markdown(const std::vector<Accuracy>& table);

/// Measures the worst errors and compares them with docs/proof.md: each row must exist, and may exceed its documented
/// error by at most a quarter (exp and products differ a little between machines). Returns the measured rows.
std::vector<Accuracy> expect_documented(Index inputs);

}  // namespace handgrad::test

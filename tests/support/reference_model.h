#pragma once

#include <algorithm>

#include "handgrad/autograd/parameter_store.h"
#include "handgrad/config/parse.h"
#include "support/reference_test.h"

namespace handgrad::test {

/// The whole models in tests/data.
inline const std::vector<std::string> reference_models = {
    "gpt", "gpt_tanh_sinusoidal", "llama", "llama_qk_norm_half", "odd_no_positions", "gpt_dropout", "smallest"};

/// The config of a model and its training, as stored in its file.
inline Config config_of(const Reference& reference, const std::string& name) {
  return parse_config(reference.text("training/config"), name, ".").config;
}

/// Sets a store to the values of a group of parameters. Both must have the same names and shapes.
inline void take_parameters(const Reference& reference, const std::string& group, ParameterStore<double>& store) {
  Index count = 0;
  for (const Parameter& p : store.parameters()) {
    ASSERT_TRUE(reference.has(group + "/" + p.name)) << p.name;
    ASSERT_EQ(reference.shape(group + "/" + p.name), p.shape) << p.name;
    const auto from = reference.values(group + "/" + p.name);
    std::copy(from.begin(), from.end(), store.mutable_values() + p.offset);
    count += p.shape.size();
  }
  EXPECT_EQ(count, reference.scalars(group)) << "the reference has parameters that the model lacks";
}

}  // namespace handgrad::test

#include "handgrad/verify/audit.h"

#include <gtest/gtest.h>

#include "handgrad/config/validate.h"

namespace handgrad {
namespace {

ModelConfig small(bool gpt) {
  Config config;
  ModelConfig& m = config.model;
  m.n_layers = 1, m.n_heads = 2, m.d_model = 8, m.context = 8, m.vocab_size = 7;
  if (gpt) {
    m.norm = NormKind::layer, m.feed_forward = FeedForwardKind::gelu, m.position = PositionKind::learned;
    m.bias = true, m.dropout = 0.1;
  } else {
    m.n_kv_heads = 1, m.qk_norm = true;
  }
  return resolve(config).model;
}

std::vector<TokenId> ids(int from) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < 16; ++i) tokens.push_back(static_cast<TokenId>((i * i + from) % 7));
  return tokens;
}

}  // namespace

TEST(Audit, proves_both_shapes) {
  for (const bool gpt : {true, false}) {
    double share = 0.0;
    AuditOptions options;
    options.entries = 4;
    options.progress = [&](const std::string&, double s) { share = s; };
    const AuditReport report = audit_model(small(gpt), ids(0), ids(3), 2, options);
    for (const AuditRow& row : report.rows) {
      EXPECT_TRUE(row.passed()) << row.section << ": " << row.name << " " << row.error << " " << row.where;
    }
    EXPECT_TRUE(report.passed());
    EXPECT_EQ(share, 1.0);
  }
}

// One token sees only itself: queries and keys have a gradient of exactly 0.
TEST(Audit, proves_a_model_where_gradients_vanish) {
  ModelConfig config = small(false);
  config.context = 1, config.n_kv_heads = 2, config.n_layers = 2, config.bias = true;
  const AuditReport report = audit_model(config, ids(0), ids(3), 16);
  for (const AuditRow& row : report.rows) {
    EXPECT_TRUE(row.passed()) << row.section << ": " << row.name << " " << row.error << " " << row.where;
  }
}

TEST(Audit, all_entries_are_looked_at_when_asked) {
  AuditOptions options;
  options.entries = 0;
  EXPECT_TRUE(audit_model(small(false), ids(0), ids(3), 2, options).passed());
}

TEST(Audit, numbers_stay_finite_and_right_over_the_range_of_float) {
  for (const AuditRow& row : audit_stability().rows) {
    EXPECT_TRUE(row.passed()) << row.name << ": " << row.error << " " << row.where;
  }
}

TEST(Audit, a_nan_does_not_pass) {
  AuditReport report;
  report.rows.push_back({"section", "name", 0.5, 1.0, ""});
  EXPECT_TRUE(report.passed());
  report.rows.push_back({"section", "name", std::numeric_limits<double>::quiet_NaN(), 1.0, ""});
  EXPECT_FALSE(report.passed());
}

}  // namespace handgrad

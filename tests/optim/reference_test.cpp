#include "support/reference_test.h"

#include "handgrad/optim/optimizer.h"
#include "handgrad/optim/schedule.h"

// Optimisers and schedules against PyTorch, in double.

namespace handgrad::test {
namespace {

const Reference& reference() {
  static const Reference values("optimizers.h5");
  return values;
}

// Row `step` of a history (steps, ...).
std::vector<double> row(const std::vector<double>& history, std::size_t step, Index size) {
  const auto begin = history.begin() + static_cast<std::ptrdiff_t>(step) * size;
  return {begin, begin + size};
}

// Twenty updates of a weight that decays and a bias that does not, compared after each.
template <class Make>
void expect_history(const std::string& path, const Make& make, Closeness& closeness) {
  SCOPED_TRACE(path);
  const ReferenceCase c(reference(), path);
  ParameterStore<double> store;
  store.add("weight", c.shape("weight"));
  store.add("bias", c.shape("bias"));
  store.allocate();
  store.allocate_gradients();
  const char* const names[] = {"weight", "bias"};
  const char* const plurals[] = {"weights", "biases"};
  std::vector<double> gradients[2], results[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto start = c.values(names[i]);
    std::copy(start.begin(), start.end(), store.mutable_values() + store.parameter(static_cast<int>(i)).offset);
    gradients[i] = c.values(std::string(names[i]) + "_gradients");
    results[i] = c.values(plurals[i]);
  }
  const auto optimizer = make(store, c);
  const auto rates = c.values("rates");
  const double limit = c.number("limit", 0.0);
  ASSERT_EQ(rates.size(), 20u);
  for (std::size_t step = 0; step < rates.size(); ++step) {
    for (std::size_t i = 0; i < 2; ++i) {
      const Parameter& p = store.parameter(static_cast<int>(i));
      const auto g = row(gradients[i], step, p.shape.size());
      std::copy(g.begin(), g.end(), store.gradients() + p.offset);
    }
    const double scale = clip_factor(gradient_norm(store), limit);
    EXPECT_NEAR(scale, c.has("scales") ? c.values("scales")[step] : 1.0, 1e-15);
    optimizer->step(store, rates[step], scale);
    for (std::size_t i = 0; i < 2; ++i) {
      const Parameter& p = store.parameter(static_cast<int>(i));
      closeness.expect(elements(store.value(p)), row(results[i], step, p.shape.size()), 0.0,
                       fmt::format("{} {}, update {}", path, names[i], step + 1));
    }
  }
}

template <class Make>
void expect_optimizer(const std::string& name, const Make& make) {
  const ThreadScope one(1);
  const auto cases = reference().names(name);
  ASSERT_GE(cases.size(), 4u);
  Closeness closeness(1e-13);
  for (const std::string& c : cases) expect_history(name + "/" + c, make, closeness);
  closeness.record();
}

TEST(OptimizerReference, twenty_updates_of_adamw) {
  expect_optimizer("adamw", [](const auto& store, const ReferenceCase& c) {
    const AdamWOptions options{c.number("beta1"), c.number("beta2"), c.number("eps"), c.number("decay")};
    return std::make_unique<AdamW<double>>(store, options);
  });
}

TEST(OptimizerReference, twenty_updates_of_sgd) {
  expect_optimizer("sgd", [](const auto& store, const ReferenceCase& c) {
    return std::make_unique<Sgd<double>>(store, SgdOptions{c.number("momentum"), c.number("decay")});
  });
}

TEST(OptimizerReference, rates_of_every_schedule) {
  const std::map<std::string, ScheduleKind> kinds = {{"constant", ScheduleKind::constant},
                                                     {"linear", ScheduleKind::linear},
                                                     {"cosine", ScheduleKind::cosine},
                                                     {"warmup_stable_decay", ScheduleKind::warmup_stable_decay}};
  const auto cases = reference().names("schedules");
  ASSERT_EQ(cases.size(), 3 * kinds.size());
  Closeness closeness(1e-13);
  for (const std::string& name : cases) {
    const ReferenceCase c(reference(), "schedules/" + name);
    Schedule schedule;
    schedule.kind = kinds.at(name.substr(0, name.rfind('_')));
    schedule.peak = c.number("peak"), schedule.floor = c.number("floor");
    schedule.warmup = c.integer("warmup", 0), schedule.total = c.integer("total", 0);
    schedule.decay = c.integer("decay", 0);
    const auto expected = c.values("rates");
    std::vector<double> rates;
    for (Index step = 0; step < static_cast<Index>(expected.size()); ++step) rates.push_back(schedule.at(step));
    closeness.expect(rates, expected, 0.0, name);
  }
  closeness.record();
}

}  // namespace
}  // namespace handgrad::test

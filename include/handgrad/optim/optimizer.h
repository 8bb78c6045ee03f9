#pragma once

#include <span>
#include <vector>

#include "handgrad/autograd/parameter_store.h"

namespace handgrad {

/// Global L2 norm of all gradients of a store, accumulated in double in a fixed order; not finite if a gradient is not.
/// Throws Error for a store without gradients, or if finish_gradients() has not been called.
template <class S>
double gradient_norm(const ParameterStore<S>& store);

/// The factor that limits the norm of the gradients to `max_norm`: min(1, max_norm / norm); 1 if max_norm is 0 (no
/// clipping). Throws RangeError for a max_norm below 0 or NaN.
/// Source: Pascanu et al. 2012, arXiv:1211.5063, section 3.2.
double clip_factor(double norm, double max_norm);

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

struct SgdOptions {
  double momentum = 0.9;
  double weight_decay = 0.0;
};

/// Updates all parameters from their gradients. The state is held in flat buffers with the layout of the store.
template <class S>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Applies one update with learning rate `lr`, after multiplying the gradients by `gradient_scale` (clipping). Throws
  /// Error for a store without gradients, with unfinished gradients, or with parameters that differ from those of the
  /// constructor; RangeError for an lr that is not finite or below 0, and for a scale that is not finite. After an
  /// error nothing has changed.
  virtual void step(ParameterStore<S>& store, double lr, double gradient_scale) = 0;
  /// Names of the state's buffers ("m", "v"), each of flat_size() elements.
  virtual std::vector<const char*> state_names() const = 0;
  /// Throws RangeError if there is no state i.
  virtual std::span<S> state(std::size_t i) = 0;
  /// The number of updates so far: t of the bias correction.
  Index updates() const { return updates_; }
  /// Throws RangeError for a number below 0.
  void set_updates(Index updates);

 protected:
  explicit Optimizer(const ParameterStore<S>& store) : parameters_(store.parameters()) {}
  /// Throws the errors of step().
  void check_step(const ParameterStore<S>& store, double lr, double gradient_scale) const;
  /// Throws RangeError unless i < count.
  static void check_state(std::size_t i, std::size_t count);

  Index updates_ = 0;

 private:
  std::vector<Parameter> parameters_;  // of the store given to the constructor
};

/// AdamW: m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  mhat = m / (1 - b1^t),  vhat = v / (1 - b2^t),
///   theta -= lr (mhat / (sqrt(vhat) + eps) + lambda theta),  lambda only where Parameter::decays().
/// One pass over memory; the same bits for any number of threads.
/// Source: Loshchilov and Hutter 2017, arXiv:1711.05101, algorithm 2. There the rate is eta alpha, and the
/// decay is multiplied by eta only: that lambda is alpha times this one.
template <class S>
class AdamW final : public Optimizer<S> {
 public:
  /// Throws RangeError for betas outside [0, 1), and for an eps or a decay that is below 0 or not finite.
  AdamW(const ParameterStore<S>& store, const AdamWOptions& options);
  void step(ParameterStore<S>& store, double lr, double gradient_scale) override;
  std::vector<const char*> state_names() const override { return {"m", "v"}; }
  std::span<S> state(std::size_t i) override {
    this->check_state(i, 2);
    return i == 0 ? std::span<S>(m_) : std::span<S>(v_);
  }

 private:
  AdamWOptions options_;
  Buffer<S> m_, v_;
};

/// Stochastic gradient descent with momentum: v = mu v + g + lambda theta,  theta -= lr v.
/// Source: Sutskever et al. 2013, On the importance of initialization and momentum in deep learning (ICML), section 2.
/// There v includes the rate: the updates are the same while the rate is constant.
template <class S>
class Sgd final : public Optimizer<S> {
 public:
  /// Throws RangeError for a momentum outside [0, 1), and for a decay that is below 0 or not finite.
  Sgd(const ParameterStore<S>& store, const SgdOptions& options);
  void step(ParameterStore<S>& store, double lr, double gradient_scale) override;
  std::vector<const char*> state_names() const override { return {"velocity"}; }
  std::span<S> state(std::size_t i) override {
    this->check_state(i, 1);
    return velocity_;
  }

 private:
  SgdOptions options_;
  Buffer<S> velocity_;
};

}  // namespace handgrad

#pragma once

#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace handgrad {

/// Sets the floating-point environment of the calling thread until the end of the scope: rounding to nearest,
/// flush-to-zero, denormals-are-zero, no traps. Bits then do not depend on the environment of the host program, and
/// denormals, which are some hundred times slower, do not occur. The destructor restores the previous environment.
class FloatEnvironment {
 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
#if defined(__SSE__)
  // All exceptions masked (0x1f80), flush-to-zero (0x8000), denormals-are-zero (0x0040), rounding bits zero.
  FloatEnvironment() : before_(_mm_getcsr()) { _mm_setcsr(0x9fc0u); }
  ~FloatEnvironment() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FloatEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(std::uint64_t{1} << 24));
  }
  ~FloatEnvironment() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  std::uint64_t before_;
#else
  FloatEnvironment() {}
#endif
};

}  // namespace handgrad

#include "handgrad/core/numerics.h"

#include "handgrad/core/gemm.h"

namespace handgrad {

Numerics this_numerics() { return {numerics_version, gemm::kernel_name(), gemm::instruction_set()}; }

}  // namespace handgrad

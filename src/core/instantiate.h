#pragma once

#include <complex>

// Forward passes exist for three scalars, backward passes for two. M is a macro of one argument, the scalar.
#define HANDGRAD_FOR_ALL_SCALARS(M) M(float) M(double) M(std::complex<double>)
#define HANDGRAD_FOR_REAL_SCALARS(M) M(float) M(double)

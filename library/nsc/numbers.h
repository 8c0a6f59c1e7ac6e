// Vec: what a thread computes with at once, a register of numbers in C++, one number in CUDA.
#pragma once

// Both sides include these. A header that is included in one branch alone would be missing in the
// other.
#include <nsc/attributes.h>
#include <nsc/integers.h>
#if defined(__CUDACC__)
#include <nsc/cuda/numbers.h>
#else
#include <nsc/vectors.h>
#endif

// How functions and tables are declared, in C++ and in CUDA.
#pragma once

// Always inlined: a step is part of its caller.
#define NSC_INLINE __attribute__((always_inline))

#if defined(__CUDACC__)
#define NSC_FUNCTION __device__ inline
#define NSC_TABLE __device__ const
#define NSC_STEP __device__ __forceinline__
#define NSC_UNROLL _Pragma("unroll")
// Keeps a loop one, whose turns are long.
#define NSC_NO_UNROLL _Pragma("unroll 1")
#else
#define NSC_FUNCTION inline
#define NSC_TABLE constexpr
#define NSC_STEP NSC_INLINE inline
// A function of the C interface; a text that has several kernels keeps theirs to itself.
#if !defined(NSC_API)
#define NSC_API extern "C" __attribute__((visibility("default")))
#endif
// Never inlined: the same code for many callers.
#define NSC_NOINLINE __attribute__((noinline))
// Unrolls a loop over the lanes of a register.
#if defined(__clang__)
#define NSC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NSC_UNROLL _Pragma("GCC unroll 64")
#endif
#endif

// How functions and tables are declared that the kernels of all targets share.
#define NSC_FUNCTION inline
#define NSC_TABLE constexpr
// Always inlined: a step is part of its codelet.
#define NSC_INLINE __attribute__((always_inline))
#define NSC_STEP NSC_INLINE inline
// Never inlined: one piece of code for many callers.
#define NSC_APART __attribute__((noinline))
#define NSC_CODELET NSC_STEP
// Unrolls a loop over the lanes of a register.
#if defined(__clang__)
#define NSC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NSC_UNROLL _Pragma("GCC unroll 64")
#endif

// --------------------------------------------------------------------------------------- lanes

// A thread computes one number where a processor's register would hold many.
template <class T>
using Vec = T;

template <class T>
__device__ inline T all(T value) {
    return value;
}

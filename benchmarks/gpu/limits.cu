// Kernels with a known number of instructions. Build with -DMULTIPLY_ADDS=1 or 2: the multiply-adds for each
// logical operation of mixed_instructions.

#define STEPS 64
#define CHAINS 8

extern "C" __global__ void empty() {}

// Runs count x STEPS x CHAINS fused multiply-adds a thread, in CHAINS independent chains.
extern "C" __global__ void multiply_adds(float *out, int count, float scale)
{
    float a[CHAINS];
    for (int k = 0; k < CHAINS; ++k)
        a[k] = threadIdx.x + k;
    for (int i = 0; i < count; ++i)
#pragma unroll
        for (int k = 0; k < STEPS * CHAINS; ++k)
            a[k % CHAINS] = fmaf(a[k % CHAINS], scale, 0.5f);
    float sum = 0;
    for (int k = 0; k < CHAINS; ++k)
        sum += a[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Runs count x STEPS x (MULTIPLY_ADDS + 1) instructions a thread: multiply-adds and logical operations. They run
// on different units, so that neither unit limits the rate of issue.
extern "C" __global__ void mixed_instructions(float *out, int count, float scale, unsigned mask)
{
    float a[CHAINS];
    unsigned b[CHAINS];
    for (int k = 0; k < CHAINS; ++k) {
        a[k] = threadIdx.x + k;
        b[k] = threadIdx.x * (k + 3);
    }
    for (int i = 0; i < count; ++i)
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
#pragma unroll
            for (int j = 0; j < MULTIPLY_ADDS; ++j) {
                const int chain = (MULTIPLY_ADDS * k + j) % CHAINS;
                a[chain] = fmaf(a[chain], scale, 0.5f);
            }
            b[k % CHAINS] = (b[k % CHAINS] & b[(k + 1) % CHAINS]) ^ mask;
        }
    float sum = 0;
    for (int k = 0; k < CHAINS; ++k)
        sum += a[k] + b[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

"""The machine that runs PTX: what it finds wrong, whatever the order of the threads.

The kernels' tests show that its opcodes are right.
"""

from __future__ import annotations

import pytest
import torch
from device import NEWEST
from machine import ORDERS, Kernels, LaunchError, UnknownPtxError

HEAD = """
extern __shared__ __align__(16) unsigned char shared_memory[];
#define SHARED int *held = reinterpret_cast<int *>(shared_memory)
#define KERNEL(name) extern "C" __global__ void name(const int *__restrict__ x, int *y, int *z)
"""
THREADS = 64

# What is wrong with a kernel that may give right results in any order of the threads.
RACES = {
    "write after write": "SHARED; held[threadIdx.x / 2] = 1;",
    "read after write": "SHARED; held[threadIdx.x] = 1; y[threadIdx.x] = held[threadIdx.x & 62];",
    "write after read": "SHARED; held[threadIdx.x] = 1; __syncthreads();"
    " y[threadIdx.x] = held[threadIdx.x ^ 1]; held[threadIdx.x] = 2;",
    "write after read, by one of many": "SHARED; held[threadIdx.x] = 1; __syncthreads();"
    " y[threadIdx.x] = held[0]; __syncwarp(); if (!threadIdx.x) held[0] = 2;",
    "a barrier of another warp": "SHARED; held[threadIdx.x] = 1; __syncwarp();"
    " y[threadIdx.x] = held[threadIdx.x ^ 32];",
    "a barrier of half a warp": "SHARED; held[threadIdx.x] = 1;"
    " __syncwarp(threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u); y[threadIdx.x] = held[threadIdx.x ^ 16];",
    "a shuffle is no barrier": "SHARED; held[threadIdx.x] = __shfl_xor_sync(~0u, int(threadIdx.x), 1);"
    " y[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1) + held[threadIdx.x ^ 1];",
    "global memory": "y[threadIdx.x / 2] = 1;",
    "two blocks write": "y[threadIdx.x] = 1;",
    "a block writes what another one reads": "z[threadIdx.x + blockDim.x * blockIdx.x] = y[threadIdx.x];"
    " if (blockIdx.x == 1) y[threadIdx.x] = 1;",
    "a block reads what another one writes": "if (!blockIdx.x) y[threadIdx.x] = 1;"
    " else z[threadIdx.x] = y[threadIdx.x];",
    "ld.global.nc": "y[threadIdx.x] = 2; __syncthreads(); z[threadIdx.x] = __ldg(y + (threadIdx.x ^ 1));",
    "an exchange beside a write": "SHARED; if (threadIdx.x == 40) held[0] = 1; else atomicExch(held, 2);",
}
# Those of which the message says more than that they are races.
SAID = ("two blocks write", "a block writes", "a block reads", "ld.global.nc")
RIGHT = {
    "barriers": "SHARED; held[threadIdx.x] = x[threadIdx.x]; __syncthreads();"
    " y[threadIdx.x] = held[63 - threadIdx.x]; __syncthreads(); held[threadIdx.x] = 0;",
    "a warp of its own": "SHARED; held[threadIdx.x] = x[threadIdx.x]; __syncwarp();"
    " y[threadIdx.x] = held[threadIdx.x ^ 31];",
    "halves, then the whole": "SHARED; held[threadIdx.x] = x[threadIdx.x];"
    " __syncwarp(threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u); __syncwarp();"
    " y[threadIdx.x] = held[threadIdx.x ^ 31];",
    "exchanges": "SHARED; atomicExch(held, 7); __syncthreads(); y[threadIdx.x] = held[0];",
    "arrays of a thread": "int own[64]; for (int i = 0; i < 64; ++i) own[i] = x[i];"
    " y[threadIdx.x] = own[63 - threadIdx.x];",
    "neighbouring bytes": "unsigned char *bytes = shared_memory; bytes[threadIdx.x] = threadIdx.x;"
    " __syncthreads(); y[threadIdx.x] = bytes[63 - threadIdx.x];",
    "sums of warps": "int sum = x[threadIdx.x];"
    " for (int bit = 16; bit; bit /= 2) sum += __shfl_xor_sync(~0u, sum, bit); y[threadIdx.x] = sum;",
    "half of the lanes leave": "if (threadIdx.x % 32 >= 16) return;"
    " const int other = __shfl_xor_sync(0xffffu, int(threadIdx.x), 15); __syncthreads();"
    " y[threadIdx.x] = other;",
}
BACKWARDS = list(range(THREADS - 1, -1, -1))
EXPECTED = {
    "a warp of its own": [*range(31, -1, -1), *range(63, 31, -1)],
    "halves, then the whole": [*range(31, -1, -1), *range(63, 31, -1)],
    "exchanges": [7] * THREADS,
    "sums of warps": [sum(range(32))] * 32 + [sum(range(32, 64))] * 32,
    "half of the lanes leave": [*range(15, -1, -1), *[0] * 16, *range(47, 31, -1), *[0] * 16],
}
# Bodies of kernels by the words of what ends them.
WRONG = {
    "different barriers": "if (threadIdx.x < 32) { __syncthreads(); } else {\n __syncthreads(); }",
    "for ever at a barrier": "if (threadIdx.x == 5) __syncwarp(); else __syncthreads();",
    "for ever at a shuffle": "if (threadIdx.x == 5) __syncthreads(); else __syncwarp();",
    "not in its own mask": "if (threadIdx.x & 1) y[0] = __shfl_xor_sync(0x55555555u, 1, 1);",
    "outside its mask": "if (threadIdx.x & 1) y[0] = __shfl_xor_sync(0xaaaaaaaau, 1, 1);",
    "lane that has left": "if (threadIdx.x % 32 == 0) return;\n __syncwarp();",
    "disagree on a shuffle": "if (threadIdx.x & 1) __syncwarp();\n else y[0] = __shfl_xor_sync(~0u, 1, 1);",
    "a lane leaves": "if (threadIdx.x % 32 != 3) __syncwarp();",
    "beyond shared memory": "SHARED; held[threadIdx.x + 1] = 1;",
    "that nobody wrote": "SHARED; if (blockIdx.x) z[threadIdx.x] = held[threadIdx.x]; held[threadIdx.x] = 1;",
    "a misaligned access": "*reinterpret_cast<int2 *>(y + 1) = {1, 2};",
}
BODIES = [*RACES.values(), *RIGHT.values(), *WRONG.values()]


@pytest.fixture(scope="module")
def kernels():
    texts = "".join(f"KERNEL(kernel_{k}) {{ {body} }}\n" for k, body in enumerate(BODIES))
    return NEWEST.kernels(HEAD + texts)


def run(kernels, body, blocks=1, order="ascending", threads=THREADS, shared_bytes=4 * THREADS):
    x, (y, z) = torch.arange(THREADS, dtype=torch.int32), torch.zeros(2, 2 * THREADS, dtype=torch.int32)
    kernel = f"kernel_{BODIES.index(body)}"
    kernels.launch(kernel, blocks, threads, [x, y, z.clone()], shared_bytes, order)
    return y[:THREADS].tolist()


@pytest.mark.parametrize("race", RACES)
def test_a_race_is_found_in_any_order(kernels, race):
    said = race if race.startswith(SAID) else "a race: |a read of shared memory that nobody wrote"
    for order in ORDERS:
        with pytest.raises(LaunchError, match=said):
            run(kernels, RACES[race], 2 if "block" in race else 1, order)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_no_race(kernels, name):
    for order in ORDERS:
        assert run(kernels, RIGHT[name], order=order) == EXPECTED.get(name, BACKWARDS)


@pytest.mark.parametrize("message", WRONG)
def test_wrong_kernels_end_with_a_message(kernels, message):
    with pytest.raises(LaunchError, match=message):
        run(kernels, WRONG[message], blocks=2)
    assert run(kernels, RIGHT["barriers"]) == BACKWARDS


@pytest.mark.parametrize(("threads", "shared_bytes"), [(0, 0), (1025, 0), (32, 8)])
def test_blocks_that_no_device_has(kernels, threads, shared_bytes):
    with pytest.raises(LaunchError, match="no block has"):
        run(kernels, RIGHT["barriers"], threads=threads, shared_bytes=shared_bytes)


def test_memory_that_is_no_argument(kernels):
    x, y = torch.zeros(THREADS, dtype=torch.int32), torch.zeros(THREADS - 1, dtype=torch.int32)
    with pytest.raises(LaunchError, match="a read or write outside of all arguments"):
        kernels.launch(f"kernel_{BODIES.index(RIGHT['barriers'])}", 1, THREADS, [x, y, None], 4 * THREADS)


def test_what_nobody_taught_ends_with_its_name():
    unknown = NEWEST.kernels('extern "C" __global__ void sine(float *y) { y[0] = __sinf(y[0]); }')
    with pytest.raises(UnknownPtxError, match=r"sin\.approx\.f32 \(line \d+ of sine\)"):
        unknown.launch("sine", 1, 1, [torch.zeros(1)])
    with pytest.raises(UnknownPtxError, match=r"line 2: \.texref"):
        Kernels(".version 9.0\n.texref a;")

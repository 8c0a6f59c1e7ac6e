"""What runs kernels on the CPU, the text or its PTX: right kernels run right, wrong ones are found out."""

from __future__ import annotations

import ctypes

import pytest
import torch
from device import MACHINES
from emulated import ORDERS, Emulated, EmulationError

THREADS = 128

RIGHT = """
extern __shared__ __align__(16) unsigned char shared_memory[];

// Reverses each block's piece of x.
extern "C" __global__ void __launch_bounds__(128) reverse(const float *x, float *y) {
    float *held = reinterpret_cast<float *>(shared_memory);
    const long long first = (long long)blockIdx.x * blockDim.x;
    held[threadIdx.x] = x[first + threadIdx.x];
    __syncthreads();
    y[first + threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

// Sums of warps, in each of their lanes; and of all threads, by the first.
extern "C" __global__ void sums(const double *x, double *y, double scale) {
    double *parts = reinterpret_cast<double *>(shared_memory);
    double sum = scale * x[threadIdx.x];
    for (int bit = 16; bit > 0; bit >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
    y[threadIdx.x] = sum;
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    double total = 0;
    for (unsigned i = 0; i < blockDim.x / 32; ++i) total += parts[i];
    y[blockDim.x] = total;
}

// Half of the lanes leave; the others still shuffle, and all threads that are left meet.
extern "C" __global__ void half(float *y) {
    if (threadIdx.x % 32 >= 16) return;
    const float other = __shfl_sync(0xffffu, float(threadIdx.x), 15 - threadIdx.x % 32, 16);
    __syncthreads();
    y[threadIdx.x] = other;
}

// Reads memory that nobody wrote, and writes values that the next block must not see.
extern "C" __global__ void unset(float *y) {
    float *held = reinterpret_cast<float *>(shared_memory);
    y[threadIdx.x] = held[threadIdx.x];
    held[threadIdx.x] = 1;
}
"""

WRONG = {
    "different barriers": "if (threadIdx.x < 64) { __syncthreads(); } else {\n __syncthreads(); }",
    "for ever at a barrier": "if (threadIdx.x == 5) __syncwarp(); else __syncthreads();",
    "for ever at a shuffle": "if (threadIdx.x == 5) __syncthreads(); else __syncwarp();",
    "not in its own mask": "if (threadIdx.x & 1) y[0] = __shfl_xor_sync(0x55555555u, 1.f, 1);",
    "outside its mask": "if (threadIdx.x & 1) y[0] = __shfl_xor_sync(0xaaaaaaaau, 1.f, 1);",
    "lane that has left": "if (threadIdx.x % 32 == 0) return;\n __syncwarp();",
    "disagree on a shuffle": "if (threadIdx.x & 1) __syncwarp();\n else y[0] = __shfl_xor_sync(~0u, 1.f, 1);",
    "a lane leaves": "if (threadIdx.x % 32 != 3) __syncwarp();",
    "read or write beyond shared memory": "held[threadIdx.x + 1] = 1;",
    "write in front of shared memory": "held[int(threadIdx.x) - 1] = 0;",
}


@pytest.fixture(scope="module", params=["ptx", "text"])
def machine(request):
    return request.param


@pytest.fixture(scope="module")
def right(tmp_path_factory, machine):
    return MACHINES[machine](RIGHT, tmp_path_factory.mktemp("right"))


def reversed_by(kernels, **options):
    x, y = torch.randn(3 * THREADS), torch.full((3 * THREADS,), torch.nan)
    kernels.launch("reverse", (3, 1, 1), (THREADS, 1, 1), [x, y], 4 * THREADS, **options)
    return torch.equal(y, x.view(3, -1).flip(-1).flatten())


@pytest.mark.parametrize("order", ORDERS)
def test_barriers_and_shuffles(right, order):
    assert reversed_by(right, order=order)
    x, y = torch.randn(THREADS, dtype=torch.float64), torch.empty(THREADS + 1, dtype=torch.float64)
    right.launch("sums", (1, 1, 1), (THREADS, 1, 1), [x, y, ctypes.c_double(2)], 256, order)
    expected = 2 * x.view(-1, 32).sum(-1)
    torch.testing.assert_close(y[:-1].view(-1, 32), expected[:, None].expand(-1, 32))
    torch.testing.assert_close(y[-1], expected.sum())
    y = torch.zeros(64)
    right.launch("half", (1, 1, 1), (64, 1, 1), [y], order=order)
    assert y.view(2, 2, 16)[:, 0].tolist() == [list(range(15, -1, -1)), list(range(47, 31, -1))]
    assert not y.view(2, 2, 16)[:, 1].any()


def test_a_missing_barrier_shows_in_some_order_of_the_text(tmp_path):
    racing = Emulated(RIGHT.replace("__syncthreads();", "", 1), tmp_path)
    assert not all(reversed_by(racing, order=order) for order in ORDERS)


def test_shared_memory_begins_as_nan_in_every_block(right, machine):
    y = torch.zeros(32)
    if machine == "text":
        right.launch("unset", (2, 1, 1), (32, 1, 1), [y], 128)
        assert y.isnan().all()
    else:
        with pytest.raises(EmulationError, match="a read of shared memory that nobody wrote"):
            right.launch("unset", (2, 1, 1), (32, 1, 1), [y], 128)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory, machine):
    bodies = "".join(
        f"""
extern "C" __global__ void wrong_{number}([[maybe_unused]] float *y) {{
    [[maybe_unused]] float *held = reinterpret_cast<float *>(shared_memory);
    {body}
}}
"""
        for number, body in enumerate(WRONG.values())
    )
    shared = "extern __shared__ __align__(16) unsigned char shared_memory[];"
    right = 'extern "C" __global__ void right(float *y) { y[threadIdx.x] = threadIdx.x; }'
    return MACHINES[machine](f"{shared}{bodies}{right}", tmp_path_factory.mktemp("wrong"))


@pytest.mark.parametrize("message", WRONG)
def test_wrong_kernels_end_with_a_message(message, wrong, machine):
    y = torch.zeros(THREADS)
    # Addresses of shared memory are unsigned in PTX.
    found = message.replace("write in front of", "read or write beyond") if machine == "ptx" else message
    with pytest.raises(EmulationError, match=found):
        wrong.launch(f"wrong_{list(WRONG).index(message)}", (1, 1, 1), (THREADS, 1, 1), [y], 4 * THREADS)
    wrong.launch("right", (1, 1, 1), (THREADS, 1, 1), [y], 4 * THREADS)
    assert torch.equal(y, torch.arange(THREADS).float())


@pytest.mark.parametrize(("threads", "shared_bytes"), [(0, 0), (1025, 0), (32, 8)])
def test_blocks_that_no_device_has(right, threads, shared_bytes):
    with pytest.raises(EmulationError, match="no block has"):
        right.launch("half", (1, 1, 1), (threads, 1, 1), [torch.zeros(1)], shared_bytes)

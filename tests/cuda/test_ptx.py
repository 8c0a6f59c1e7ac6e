"""The machine that runs PTX: what it finds wrong, whatever the order of the threads, and opcodes."""

from __future__ import annotations

import ctypes
import math
import operator
import random
import struct

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


def wrapped(value, bits, signed):
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def quotient(a, b):
    """Return a / b, rounded to zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Opcodes on integers of a type, of two or three operands, by Python's integers.
INTEGERS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul.lo": operator.mul,
    "div": quotient,
    "rem": lambda a, b: a - quotient(a, b) * b,
    "min": min,
    "max": max,
}
BITWISE = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": lambda a, b: a << b if b < 70 else 0,
}
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def executed_opcodes(lines, operands):
    """Run PTX that stores a result of 64 bits for each line; %rd1 to %rd3 are operands."""
    ptx = NEWEST.ptx('extern "C" __global__ void of(const long long *x, long long *y) { y[0] = x[0]; }')
    head = ptx[: ptx.index("{", ptx.index(".entry"))]
    names = [f"of_param_{k}" for k in range(2)]
    body = [
        "{",
        ".reg .pred %p<3>;",
        ".reg .b64 %rd<10>;",
        *(f"ld.param.u64 %rd{8 + k}, [{name}];" for k, name in enumerate(names)),
        *(f"ld.global.u64 %rd{1 + k}, [%rd8+{8 * k}];" for k in range(len(operands))),
    ]
    for k, line in enumerate(lines):
        body += [*line, f"st.global.u64 [%rd9+{8 * k}], %rd4;"]
    kernels = Kernels("\n".join([head, *body, "ret;", "}"]))
    x = torch.tensor([wrapped(each, 64, True) for each in operands])
    y = torch.zeros(len(lines), dtype=torch.int64)
    kernels.launch("of", 1, 1, [x, y])
    return y.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_opcodes_of_integers(seed):
    draw = random.Random(seed)
    values = [draw.choice([draw.getrandbits(64), draw.getrandbits(6), -1, 1 << 31, 1 << 63]) for _ in "abc"]
    lines, expected = [], []

    def add(result, bits, signed, *line):
        lines.append(line)
        expected.append(wrapped(wrapped(result, bits, signed), 64, True))

    for kind in ("u", "s"):
        for bits in (16, 32, 64):
            signed, type_ = kind == "s", f"{kind}{bits}"
            a, b, c = (wrapped(each, bits, signed) for each in values)
            for name, function in INTEGERS.items():
                if name in ("div", "rem") and b == 0:  # open in PTX
                    continue
                add(function(a, b), bits, signed, f"{name}.{type_} %rd4, %rd1, %rd2;")
            add(a * b + c, bits, signed, f"mad.lo.{type_} %rd4, %rd1, %rd2, %rd3;")
            add(a * b >> bits, bits, signed, f"mul.hi.{type_} %rd4, %rd1, %rd2;")
            if signed:
                add(-a, bits, signed, f"neg.{type_} %rd4, %rd1;")
            by = values[1] & 0xFFFFFFFF
            add(a >> min(by, bits), bits, signed, f"shr.{type_} %rd4, %rd1, %rd2;")
            if bits < 64:
                add(a * b, 2 * bits, signed, f"mul.wide.{type_} %rd4, %rd1, %rd2;")
            for name, function in COMPARISONS.items():
                add(
                    function(a, b),
                    64,
                    True,
                    f"setp.{name}.{type_} %p1, %rd1, %rd2;",
                    "selp.b64 %rd4, 1, 0, %p1;",
                )
            for other in (8, 16, 32, 64):
                narrow = wrapped(values[0], other, signed)
                add(narrow, bits, signed, f"cvt.{type_}.{kind}{other} %rd4, %rd1;")
    for bits in (16, 32, 64):
        a, b = (wrapped(each, bits, False) for each in values[:2])
        for name, function in BITWISE.items():
            second = values[1] & 0xFFFFFFFF if name == "shl" else b
            add(function(a, second), bits, False, f"{name}.b{bits} %rd4, %rd1, %rd2;")
        add(~a, bits, False, f"not.b{bits} %rd4, %rd1;")
    a, b = (wrapped(each, 32, False) for each in values[:2])
    mask = (1 << 7) - 1 << 5
    add(b & ~mask | (a << 5 & mask), 32, False, "bfi.b32 %rd4, %rd1, %rd2, 5, 7;")
    add(a | b << 32, 64, True, "mov.b64 %rd4, {%rd1, %rd2};")
    add(values[0] >> 32, 32, False, "mov.b64 {%rd5, %rd4}, %rd1;")
    found = executed_opcodes(lines, values)
    wrong = [(line, f, e) for line, f, e in zip(lines, found, expected, strict=True) if f != e]
    assert not wrong


def test_opcodes_of_numbers():
    def bits(value):
        return struct.unpack("<q", struct.pack("<d", value))[0]

    for a, b, c in ((1.5, -2.25, 1e-17), (0.1, 3.0, -0.3), (-0.0, 0.0, 1.0), (math.nan, 2.0, 1.0)):
        real = ctypes.CDLL(None).fma if hasattr(ctypes.CDLL(None), "fma") else None
        lines = {
            "add.f64 %rd4, %rd1, %rd2;": a + b,
            "sub.rn.f64 %rd4, %rd1, %rd2;": a - b,
            "mul.f64 %rd4, %rd1, %rd2;": a * b,
            "neg.f64 %rd4, %rd1;": -a,
        }
        if b:
            lines["div.rn.f64 %rd4, %rd1, %rd2;"] = a / b
            lines["rcp.rn.f64 %rd4, %rd2;"] = 1 / b
        if real is not None:
            real.restype, real.argtypes = ctypes.c_double, [ctypes.c_double] * 3
            lines["fma.rn.f64 %rd4, %rd1, %rd2, %rd3;"] = real(a, b, c)
        found = executed_opcodes([[line] for line in lines], [bits(each) for each in (a, b, c)])
        for line, value in zip(lines, found, strict=True):
            number = struct.unpack("<d", struct.pack("<q", value))[0]
            assert (math.isnan(number) and math.isnan(lines[line])) or bits(lines[line]) == value, line
        compared = {"lt": a < b, "leu": not a > b, "neu": a != b, "equ": not (a < b or a > b)}
        compared |= {"ne": a < b or a > b, "num": not math.isnan(a), "geu": not a < b}
        texts = [[f"setp.{name}.f64 %p1, %rd1, %rd2;", "selp.b64 %rd4, 1, 0, %p1;"] for name in compared]
        operands = [bits(each) for each in (a, b, c)]
        assert executed_opcodes(texts, operands) == [int(each) for each in compared.values()]
    for value, whole in ((-2.5, -2), (1e300, 2**31 - 1), (math.nan, 0)):
        assert executed_opcodes([["cvt.rzi.s32.f64 %rd4, %rd1;"]], [bits(value)]) == [whole]
    texts = [["cvt.rn.f64.s64 %rd4, %rd1;"], ["cvt.rn.f32.f64 %rd4, %rd2;", "cvt.f64.f32 %rd4, %rd4;"]]
    found = executed_opcodes(texts, [-7, bits(0.1)])
    single = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert found == [bits(-7.0), bits(single)]

"""The functions of `nsc emit cuda` sort and select in kernels and on the host, and stay in registers."""

from __future__ import annotations

import ctypes
import itertools
import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from device import NEWEST
from machine import Kernels
from test_compile import resources_of

import nsc
from nsc.compiler.selection import median, ranks, top_k
from nsc.errors import LoweringError
from nsc.runtime.build import nvrtc

# Name to network, n and what is selected.
NETWORKS = {
    "one": (("best", 1), None),
    "eight": (("best", 8), None),
    "twelve": (("bitonic", 12), None),
    "middle": (("best", 9), median()),
    "some": (("bitonic", 6), ranks(5, 0, 2)),
    "top": (("best", 16), top_k(4)),
}
TYPES = {"int32": "int", "float32": "float", "float64": "double", "uint8": "unsigned char"}
SAMPLES = 1 << 12

# A thread sorts a sample; the payload of a value is its place.
KERNEL = """
extern "C" {qualifiers} void {function}(const {c} *x, {c} *values, {c} *keys, int *places) {{
    {loop} {{
        {c} v[{n}];
        int p[{n}];
        for (int k = 0; k < {n}; ++k) v[k] = x[s * {n} + k], p[k] = k;
        {call}
    }}
}}
"""
CALLS = {
    "sort": """
        {c} w[{n}];
        for (int k = 0; k < {n}; ++k) w[k] = v[k];
        {name}_sort(w);
        {name}_sort_pairs(v, p);
        for (int r = 0; r < {n}; ++r)
            values[s * {n} + r] = w[r], keys[s * {n} + r] = v[r], places[s * {n} + r] = p[r];""",
    "one": """
        values[s] = {name}_select(v);
        {c} u[1];
        int q[1];
        {name}_select_pairs(v, p, u, q);
        keys[s] = u[0], places[s] = q[0];""",
    "some": """
        {c} w[{k}];
        {c} u[{k}];
        int q[{k}];
        {name}_select(v, w);
        {name}_select_pairs(v, p, u, q);
        for (int r = 0; r < {k}; ++r)
            values[s * {k} + r] = w[r], keys[s * {k} + r] = u[r], places[s * {k} + r] = q[r];""",
}
ALONE = """
extern "C" __global__ void alone(const int *x, int *value) {
    int v[9];
    for (int k = 0; k < 9; ++k) v[k] = x[k];
    *value = middle_select(v);
}
"""
ON_A_GPU = {"qualifiers": "__global__", "loop": "const int s = blockIdx.x * blockDim.x + threadIdx.x;"}
ON_THE_HOST = {"qualifiers": "", "loop": f"for (int s = 0; s < {SAMPLES}; ++s)"}


def wanted(name):
    (_, n), select = NETWORKS[name]
    return [*range(n)] if select is None else [*select.outputs(n).values()]


@cache
def text(name):
    network, select = NETWORKS[name]
    return nsc.emit("cuda", *network, select=select, name=name)


def program(place):
    """Return a program that runs every function on every type."""
    texts = [text(name) for name in NETWORKS]
    for (name, ((_, n), select)), (type_, c) in itertools.product(NETWORKS.items(), TYPES.items()):
        k = len(wanted(name))
        call = CALLS["sort" if select is None else "one" if k == 1 else "some"].format(
            name=name, c=c, n=n, k=k
        )
        texts.append(KERNEL.format(**place, function=f"{name}_{type_}", c=c, n=n, call=call))
    return "".join(texts)


@pytest.fixture(scope="module")
def kernels():
    return Kernels(ptx())


def ptx():
    return NEWEST.ptx(program(ON_A_GPU) + ALONE)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    (folder / "program.cpp").write_text(program(ON_THE_HOST), encoding="utf-8")
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
    command = ("g++", "-std=c++11", "-O0", *warnings, "-fPIC", "-shared", "program.cpp", "-o", "program.so")
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return ctypes.CDLL(str(folder / "program.so"))


def samples(type_, n):
    """Return all 0-1 inputs of up to 10 values, and random ones; floats with zeros, infinities and NaN."""
    bits = np.arange(SAMPLES)[:, None] >> np.arange(n) & 1
    x = np.random.randint(0, 200, (SAMPLES, n)).astype(type_)
    if x.dtype.kind == "f":
        special = np.array([0.0, np.inf, np.nan, np.finfo(type_).smallest_subnormal, 1e30], type_)
        special = np.concatenate([special, np.copysign(special, -1)])
        x = np.where(np.random.random(x.shape) < 0.5, np.random.choice(special, x.shape), -x)
    return np.where(np.arange(SAMPLES)[:, None] < 1 << min(n, 11), bits.astype(type_), x)


def check(name, type_, run):
    n, ranks_ = NETWORKS[name][0][1], wanted(name)
    x = samples(type_, n)
    values, keys = np.zeros((2, SAMPLES, len(ranks_)), type_)
    places = np.full((SAMPLES, len(ranks_)), -1, np.int32)
    run(x, values, keys, places)
    expected = np.sort(x, axis=1)
    if x.dtype.kind == "f":  # -0 first, and NaN without a sign
        expected = np.take_along_axis(x, np.lexsort((np.copysign(1, x), x)), 1)
        expected = np.where(np.isnan(expected), np.abs(expected), expected)
    expected = np.ascontiguousarray(expected[:, ranks_])
    assert values.tobytes() == keys.tobytes() == expected.tobytes()
    moved = np.take_along_axis(x, places, 1)
    moved = np.where(np.isnan(moved), np.abs(moved), moved) if x.dtype.kind == "f" else moved
    assert moved.tobytes() == keys.tobytes()
    assert (np.diff(np.sort(places, axis=1)) > 0).all()


@pytest.mark.slow("kernels run on the CPU")
@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_are_numpys_sort(name, kernels):
    def run(*arrays):
        tensors = list(map(torch.from_numpy, arrays))
        kernels.launch(f"{name}_{type_}", SAMPLES // 128, 128, tensors)

    for type_ in TYPES:
        check(name, type_, run)


@pytest.mark.slow("NVRTC compiles for seconds")
def test_kernels_have_no_branch_no_array_in_memory_and_half_comparators():
    """The median of 9 takes 30 minima and maxima, fewer than two for each of its 19 comparators."""
    assert "bra" not in ptx()
    assert ".local" not in ptx()
    alone = re.search(r"\.entry alone\(.*?\n}", ptx(), re.DOTALL)[0]
    assert len(re.findall(r"\t(?:min|max)\.s32", alone)) == 30
    assert "selp" not in alone


@pytest.mark.parametrize("name", NETWORKS)
def test_programs_on_the_host_are_numpys_sort(name, library):
    def run(*arrays):
        library[f"{name}_{type_}"](*(ctypes.c_void_p(array.ctypes.data) for array in arrays))

    for type_ in TYPES:
        check(name, type_, run)


KEYS = """{text}
extern "C" __global__ void kernel(float *x) {{
    float k[64];
    for (int i = 0; i < 64; ++i) k[i] = x[64 * threadIdx.x + i];
    best_64_sort(k);
    for (int i = 0; i < 64; ++i) x[64 * threadIdx.x + i] = k[i];
}}
"""
PAIRS = """{text}
struct Payload {{ float x; short y; }};
extern "C" __global__ void kernel(float *keys, Payload *values) {{
    float k[32];
    Payload v[32];
    for (int i = 0; i < 32; ++i) k[i] = keys[32 * threadIdx.x + i], v[i] = values[32 * threadIdx.x + i];
    best_32_sort_pairs(k, v);
    for (int i = 0; i < 32; ++i) keys[32 * threadIdx.x + i] = k[i], values[32 * threadIdx.x + i] = v[i];
}}
"""


@pytest.mark.slow("NVRTC compiles for seconds")
@pytest.mark.parametrize(("kernel", "n", "architecture"), [(KEYS, 64, "sm_80"), (PAIRS, 32, "sm_90")])
def test_samples_stay_in_registers(kernel, n, architecture):
    text = kernel.format(text=nsc.emit("cuda", "best", n))
    found = resources_of(*nvrtc.find_nvrtc(architecture).compiled(text), architecture)["kernel"]
    assert found.spilled_bytes == found.stack_bytes == 0


@pytest.mark.slow("NVRTC compiles for seconds")
def test_the_pages_kernels_compile():
    page = (Path(__file__).parents[2] / "docs/languages.md").read_text(encoding="utf-8")
    source = re.search(r"^```cuda\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    source = source.replace('#include "best_8.cuh"', nsc.emit("cuda", "best", 8))
    source = source.replace('#include "best_9_median.cuh"', nsc.emit("cuda", "best", 9, select=median()))
    found = resources_of(*nvrtc.find_nvrtc("sm_80").compiled(source), "sm_80")
    assert len(found) == 2
    assert not any(each.stack_bytes for each in found.values())


def test_a_network_that_no_thread_can_hold():
    with pytest.raises(LoweringError, match="at most 700 comparators, and this network has 741"):
        nsc.emit("cuda", "odd_even", 39)

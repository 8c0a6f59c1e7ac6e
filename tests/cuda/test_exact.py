"""Exact sorting and selection on a GPU, run on the CPU, against torch's stable sort."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from device import CpuExactProgram

import nsc
from nsc.compiler.selection import ranks, top_k
from nsc.contract.exact import ExactSource
from nsc.errors import ToolchainError, UnprovedError
from nsc.join.on_demand import exact_kernel
from nsc.operators import exact
from nsc.operators.filtering import Windows, by_windows
from nsc.runtime.devices.launches import EXACT_PAIRS, EXACT_VALUES, SHARED_KIB, exact_launches
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.exact.sorting import TorchSort

pytestmark = pytest.mark.slow("kernels run on the CPU")

# Each width and each kind of values. The tests of C++ have all types, by the same headers.
DTYPES = ("bool", "uint8", "int8", "float16", "int32", "float32", "int64", "float64")
WHOLES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Many samples and few, in front of the axis and behind it; a block's last samples, and a slab's, are missing.
SHAPES = ((1, 1), (5, 1), (150, 1), (1, 40), (3, 17), (2, 3), (0, 1), (2, 0))


@pytest.fixture(scope="module")
def programs(compiler):
    """Return what makes programs, each once."""

    @functools.cache
    def make(n, dtype, places=None, shared_kib=227):
        return CpuExactProgram(exact_kernel(n, places).source, dtype, shared_kib << 10, compiler)

    return make


def values_of(shape, dtype, seed=0):
    """Return values with ties; of floats also zeros, infinities and NaN of both signs."""
    random = torch.Generator().manual_seed(seed)
    x = 40 * torch.randn(shape, generator=random)
    if dtype == "bool":
        return x > 0
    real = getattr(torch, dtype)
    if not real.is_floating_point:
        information = torch.iinfo(real)
        x = x.round().clamp(information.min, information.max).to(real)
        return torch.where(torch.rand(shape, generator=random) < 0.1, information.min, x).to(real)
    x = x.round().to(real)
    whole = WHOLES[real.itemsize]
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40]).to(real)
    nans = (special[4:5].view(whole) | 1), -1 - special[3:4].view(whole)
    special = torch.cat([special, *(nan.view(real) for nan in nans)])
    place = torch.randint(0, 3 * len(special), x.shape, generator=random)
    return torch.where(place < len(special), special[place.clamp(max=len(special) - 1)], x)


def bits(x):
    return x.view(WHOLES[x.itemsize])


def check(op, n, dtype, shapes=SHAPES, wanted=None, orders=(False, True)):
    """Sort along an axis in the middle, in both orders, with indices of both types and without."""
    for outer, inner in shapes:
        x = values_of((outer, n, inner) if inner != 1 else (outer, n), dtype, outer + inner)
        for descending in orders:
            expected = torch.sort(x, dim=1, descending=descending, stable=True)
            values, indices = expected if wanted is None else (each[:, wanted] for each in expected)
            for short in (False, True):
                found = exact._sort(x, 1, descending, short, op.kernel.spec)
                assert found[1].dtype == (torch.int32 if short else torch.int64)
                assert torch.equal(found[1].long(), indices)
                assert torch.equal(bits(found[0]), bits(values))
            alone = exact._values(x, 1, descending, op.kernel.spec)
            assert alone.dtype == x.dtype
            torch.testing.assert_close(alone, values, rtol=0, atol=0, equal_nan=True)


def sorting_by(program):
    return exact_cuda.CudaSort(program.source, program)


@pytest.fixture
def on(monkeypatch):
    """Make exact sorting run on a program."""

    def use(program, order="ascending"):
        program.order = order
        monkeypatch.setattr(exact, "_worker", lambda x, spec: sorting_by(program))
        return program

    return use


@functools.cache
def operator(n, select=None):
    return nsc.compile("bitonic", n, select=select)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_type(dtype, programs, on):
    on(programs(5, dtype), "shuffled")
    check(operator(5), 5, dtype)


@pytest.mark.parametrize("dtype", ["uint16", "uint64"])
def test_types_that_torch_does_not_sort(dtype, programs, on):
    on(programs(5, dtype))
    highest = np.iinfo(dtype).max
    values = np.random.default_rng(0).integers(0, highest, (40, 5), dtype, endpoint=True)
    values[:, 3] = values[:, 1]
    for descending in (False, True):
        order = np.argsort(highest - values if descending else values, 1, kind="stable")
        found = exact._sort(torch.from_numpy(values), 1, descending, False, operator(5).kernel.spec)
        assert np.array_equal(found[1].numpy(), order)
        assert np.array_equal(found[0].numpy(), np.take_along_axis(values, order, 1))


@pytest.mark.parametrize(("n", "dtype"), [(1, "float32"), (17, "bfloat16"), (34, "int64")])
def test_any_number_of_values(n, dtype, programs, on):
    """Beyond 200 comparators keys of 64 bits with places run from a table, values alone do not."""
    program = on(programs(n, dtype))
    assert (EXACT_PAIRS in program.launches.straight) == (dtype == "bfloat16")
    assert (EXACT_VALUES in program.launches.straight) == (n > 1)
    check(operator(n), n, dtype, ((150, 1), (3, 17), (2, 40)))


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
def test_values_may_lie_anywhere(dtype, programs, on):
    """16 bytes are read at a time where they lie at a multiple of 16, and one value at a time elsewhere."""
    on(programs(5, dtype))
    for offset in (0, 1):
        x = values_of((40 * 5 + 1,), dtype)[offset:][: 40 * 5].view(40, 5)
        assert (x.data_ptr() % 16 == 0) == (offset == 0)
        values, indices = exact._sort(x, 1, False, False, operator(5).kernel.spec)
        expected = torch.sort(x, dim=1, stable=True)
        assert torch.equal(indices, expected.indices)
        assert torch.equal(bits(values), bits(expected.values))


@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_a_network_that_runs_from_a_table(dtype, programs, on):
    program = on(programs(160, dtype), "shuffled")
    assert not program.launches.straight
    check(operator(160), 160, dtype, ((17, 1), (2, 9)), orders=(True,))


@pytest.mark.parametrize(
    ("n", "select", "places", "descends"),
    [(9, ranks(7, 0, 4), (7, 0, 4), False), (8, top_k(2), (0, 1), True), (8, ranks(7), (0,), True)],
)
def test_selection(n, select, places, descends, programs, on):
    """The k largest are the first places of a descending order, other ranks places of an ascending one."""
    for dtype in ("float16", "int64"):
        on(programs(n, dtype, places))
        check(operator(n, select), n, dtype, ((40, 1), (2, 3)), list(places), (descends,))


def test_little_shared_memory(programs, on):
    """A warp's tile of keys with places does not fit, so threads share samples."""
    program = on(programs(17, "float64", shared_kib=8))
    assert program.launches.straight == {EXACT_VALUES}
    assert program.launches.blocks[EXACT_VALUES].threads == 32
    check(operator(17), 17, "float64", ((70, 1), (2, 33)))


@pytest.mark.parametrize("kib", sorted(set(SHARED_KIB.values())))
def test_every_size_fits_every_device(kib):
    for n in (1, 2, 17, 128, 1000, 1024):
        for straight in (0, 5, 150, 500, 1500, 3000):
            source = ExactSource("any", n, n, 0, straight, {})
            for value_bytes in (1, 2, 4, 8):
                launches = exact_launches(source, value_bytes, kib << 10)
                assert bool(launches.straight) <= bool(straight)
                for function, block in launches.blocks.items():
                    assert block.shared_bytes <= kib << 10
                    assert block.threads % block.items == 0
                    assert (block.threads == block.items) == (function in launches.straight)


class OnGpu:
    """What exact sorting asks of a tensor on a GPU."""

    is_cpu, is_cuda, dtype, device = False, True, torch.float32, torch.device("cuda", 0)


def test_what_sorts_on_a_gpu(monkeypatch):
    """The exact kernel; torch where there is none, or no CuPy."""
    spec, asked = operator(5).kernel.spec, []

    def program_of(source, dtype, device):
        asked.append((source.n, dtype, device))
        if len(asked) == 1:
            return "the program"
        raise ToolchainError("no CuPy")

    monkeypatch.setattr(exact_cuda, "program_of", program_of)
    assert exact._worker(OnGpu, spec)._program == "the program"
    assert isinstance(exact._worker(OnGpu, spec), TorchSort)
    assert asked == [(5, "float32", OnGpu.device)] * 2
    monkeypatch.setattr(exact, "_exact_kernel", lambda spec: None)
    assert isinstance(exact._worker(OnGpu, spec), TorchSort)
    assert len(asked) == 2


@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_filters_select_from_windows(dtype, programs, monkeypatch):
    x = values_of((3, 5, 7), dtype)
    median = nsc.compile_filter(3)
    program = programs(9, "uint8" if dtype == "bool" else dtype, (4,))
    monkeypatch.setattr(
        exact, "_selecting_on_gpu", lambda windows, rank: sorting_by(program) if rank == 4 else None
    )
    for mode in ("reflect", "constant"):
        selected = by_windows(x, Windows("", median.window, (0, 0), mode, 0))
        assert torch.equal(bits(selected), bits(median(x, mode)))


def test_where_windows_are_selected_from(monkeypatch):
    gpu = OnGpu()
    gpu.shape = (2, 9)
    monkeypatch.setattr(exact_cuda, "program_of", lambda source, dtype, device: source.name)
    assert exact._selecting_on_gpu(gpu, 4)._program == exact_kernel(9, (4,)).source.name
    assert exact._selecting_on_gpu(torch.zeros(2, 9), 4) is None

    def unproved(*arguments):
        raise UnprovedError("no method settled it")

    monkeypatch.setattr("nsc.operators.exact.exact_kernel", unproved)
    assert exact._selecting_on_gpu(gpu, 4) is None

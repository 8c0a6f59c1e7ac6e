"""The CUDA text compiles for every kind of GPU without a warning, within the limits of its target."""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import json
import re
import subprocess
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from device import FIRST_OF_13, NEWEST, Compiler

from nsc import library
from nsc.cli.main import main
from nsc.compiler.driver import compile_network
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.network import Network
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.request import Request
from nsc.compiler.schedule import WIDEST
from nsc.compiler.selection import top_k
from nsc.contract.exact import for_element
from nsc.contract.interface import function_name
from nsc.contract.launch import FUNCTIONS, LANE_BYTES, PARTS
from nsc.errors import BuildError, ToolchainError
from nsc.join.on_demand import exact_kernel
from nsc.runtime.build import nvrtc
from nsc.runtime.devices.launches import EXACT_PAIRS, EXACT_VALUES, SHARED_KIB, exact_launches
from nsc.runtime.relaxed import cubin
from nsc.runtime.relaxed.kernel import Kernel

# The version whose architectures and figures are held here.
VERSION = (13, 5)
# Architectures that NVRTC knows and whose shared memory no document states.
UNPUBLISHED = {"sm_107"}
# What CUDA 12 was the last to support.
OF_CUDA_12 = {"sm_70", "sm_72"}
# Registers that a thread can have.
MOST_REGISTERS = 255


TABLED, FIRST = {"straight_line": 0}, {"select": top_k(1)}
# Straight-line code and tables; each sigmoid and form in one of the texts. Kernels: the architecture, the
# network and its wires, the relaxation, and what else is requested.
CASES = {
    "straight, sm_80": ("sm_80", "bitonic", 4, Relaxation(), {}),
    "straight, sm_90": ("sm_90", "bitonic", 4, Relaxation("gaussian", 0.25, True), {}),
    "straight, sm_120": ("sm_120", "bitonic", 4, Relaxation("reciprocal", 0.5), {}),
    "a selection, tabled, sm_80": ("sm_80", "bitonic", 4, Relaxation("optimal", 0.4, True), TABLED | FIRST),
    "a selection, tabled, sm_120": ("sm_120", "bitonic", 4, Relaxation("cauchy", 0.75), TABLED | FIRST),
    "a selection, straight, sm_90": ("sm_90", "bitonic", 4, Relaxation("hard", 0.0, True), FIRST),
    "no comparator, sm_90": ("sm_90", Network.from_layers(1, []), 1, Relaxation(), {}),
    "tiles of many warps, tabled, sm_90": ("sm_90", "odd_even", 66, Relaxation(), TABLED),
}
assert {relaxation.sigmoid for _, _, _, relaxation, _ in CASES.values()} == set(SIGMOIDS)

# Exact kernels: values of a sample, their type and the architecture. Both ways to run, items of all kinds.
EXACT_CASES = {
    "exact float32, sm_80": (8, "float32", "sm_80"),
    "exact uint8, sm_120": (8, "uint8", "sm_120"),
    "exact uint64, sm_90": (8, "uint64", "sm_90"),
    "exact bfloat16, tabled, sm_90": (160, "bfloat16", "sm_90"),
}


# What ptxas says of a function.
RESOURCES = re.compile(
    r"Compiling entry function '(?P<function>\w+)'(?:(?!Compiling)[\s\S])*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r"(?:(?!Compiling)[\s\S])*?Used (?P<registers>\d+) registers"
)


def kernel(request):
    return Kernel(compile_network(request).package.files)


def compiled(package, architecture):
    return cubin.compiler_of(package, architecture).compiled(package.sources["cuda"])


def compiled_exact(n, dtype, architecture):
    """Return the cubin of an exact kernel and the compiler's log."""
    source = exact_kernel(n).source
    launched = exact_launches(source, getattr(torch, dtype).itemsize, SHARED_KIB[architecture] << 10)
    compiler = replace(nvrtc.find_nvrtc(architecture), defines=launched.defines)
    return compiler.compiled(for_element(source.texts["cuda"], dtype))


def test_golden_text(generated):
    generated("bitonic_4.cu", kernel(Request("bitonic", 4, targets=("cuda",))).sources["cuda"])
    generated("best_4_exact.cu", compile_exact(4).texts["cuda"])


@pytest.mark.slow("NVRTC compiles for a minute")
@pytest.mark.parametrize(
    ("compiler", "part"),
    [
        (FIRST_OF_13, 0),
        (NEWEST, 1),
        *(
            pytest.param(*each, marks=pytest.mark.nightly("each text meets both versions of NVRTC"))
            for each in itertools.product((FIRST_OF_13, NEWEST), range(4))
            if each not in ((FIRST_OF_13, 0), (NEWEST, 1))
        ),
    ],
    ids=lambda value: value.folder.partition("/")[0] if isinstance(value, Compiler) else str(value),
)
def test_both_compilers_take_every_text_without_a_warning(monkeypatch, compiler, part):
    """A part is every fourth case, for float32 and float64 in turn."""
    monkeypatch.setattr(nvrtc, "_nvrtc", lambda: compiler.library)
    assert (nvrtc.version() == "13.0") == (compiler is FIRST_OF_13)
    for number, (name, case) in enumerate(CASES.items()):
        if number % 4 == part:
            check(name, ("float32", "float64")[number // 4], *case)
    for name, case in list(EXACT_CASES.items())[part::4]:
        found = resources_of(*compiled_exact(*case), name)
        assert set(found) == {EXACT_VALUES, EXACT_PAIRS}, name
        for function in found.values():
            assert function.registers <= MOST_REGISTERS, name
            assert function.spilled_bytes == function.stack_bytes == 0, name


@dataclass(frozen=True)
class Resources:
    """What a thread of a function takes: registers, spilled bytes, and bytes of its stack."""

    registers: int
    spilled_bytes: int
    stack_bytes: int


def resources(log):
    """Return what a compiler's log says of each function."""
    return {
        match["function"]: Resources(
            int(match["registers"]), int(match["stores"]) + int(match["loads"]), int(match["stack"])
        )
        for match in RESOURCES.finditer(log)
    }


def resources_of(cubin, log, where):
    assert not [line for line in log.splitlines() if "warning" in line], where
    return resources(log)


def check(where, real, architecture, network, n, relaxation, options):
    package = kernel(Request(network, n, relaxation, (real,), ("cuda",), **options))
    found = resources_of(*compiled(package, architecture), where)
    assert set(found) == {function_name(function, real) for function in FUNCTIONS}, where
    longest = int(re.search(r"longest_codelet = (\d+)", package.sources["cuda"])[1])
    is_tabled = options.get("straight_line") == 0
    for function, taken in found.items():
        assert taken.registers <= MOST_REGISTERS, (where, function)
        # Only the rows and products of a codelet that runs from its table are indexed at run time.
        indexed = WIDEST + longest if is_tabled else 0
        stack = taken.stack_bytes - taken.spilled_bytes
        assert stack <= indexed * LANE_BYTES, (where, function)
        assert taken.spilled_bytes == 0 or is_tabled, (where, function)


@pytest.mark.nightly("NVRTC compiles a large network")
def test_32_wires_stay_in_registers():
    """They are the most wires whose float32 kernels do; it is a figure of one version of NVRTC."""
    if nvrtc._nvrtc().getVersion() != VERSION:
        pytest.skip(f"the figure is of NVRTC {VERSION}")
    _, log = compiled(kernel(Request("bitonic", 32, targets=("cuda",))), "sm_90")
    for name, taken in resources(log).items():
        assert taken.registers <= MOST_REGISTERS, name
        assert taken.spilled_bytes == taken.stack_bytes == 0, name


@functools.cache
def disassembler():
    """Return nvdisasm, of the package nvidia-cuda-nvdisasm."""
    paths = (Path(file.locate()) for file in importlib.metadata.files("nvidia-cuda-nvdisasm") or ())
    return next(path for path in paths if path.name == "nvdisasm")


def test_cuda_has_a_namespace_of_its_own():
    """Headers of both languages name some structs alike; numbers.h alone takes the place of a C++ header."""
    for path in library.FOLDER.glob("nsc/*/cuda/*.h"):
        assert "namespace nsc {" not in path.read_text(encoding="utf-8"), path


def test_a_lane_has_as_many_bytes_as_launches_count_with():
    text = (library.FOLDER / "nsc/relaxed/cuda/tile.h").read_text(encoding="utf-8")
    assert f"constexpr int32_t lane_bytes = {LANE_BYTES};\n" in text


@pytest.mark.slow("NVRTC compiles for a minute")
def test_parts_are_all_functions_and_cubins_whole(tmp_path):
    """NVIDIA's disassembler takes a cubin, and refuses one that lacks the byte that CuPy takes off."""
    package = kernel(Request("odd_even", 2, targets=("cuda",)))
    for part, functions in PARTS.items():
        compiler = cubin.compiler_of(package, "sm_90", part)
        binary, log = compiler.compiled(package.sources["cuda"])
        assert set(resources(log)) == {function_name(each, "float32") for each in functions}
    for length, is_whole in ((len(binary), True), (len(binary) - 1, False)):
        (file := tmp_path / "kernels.cubin").write_bytes(binary[:length])
        done = subprocess.run([disassembler(), file], capture_output=True, text=True)
        assert (done.returncode == 0) == is_whole, done.stderr


def test_a_text_that_does_not_compile_says_where(monkeypatch):
    with pytest.raises(BuildError, match=r"NVRTC .* failed for sm_90(.|\n)*kernel.cu\(1\): error"):
        nvrtc.Nvrtc("sm_90", "13").compiled("int main( {}")


def test_nvrtc_has_a_thread_of_its_own(monkeypatch):
    """NVRTC 12 changes the locale of its thread."""
    threads = []
    monkeypatch.setattr(nvrtc, "_nvrtc", lambda: threads.append(threading.current_thread()) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        nvrtc.Nvrtc("sm_90", "13").compiled("")
    assert threads != [threading.current_thread()]


def test_every_architecture_of_nvrtc_has_its_shared_memory():
    version = nvrtc._nvrtc().getVersion()
    if version != VERSION:
        pytest.skip(f"the architectures are those of NVRTC {VERSION}, this is {version}")
    known = {f"sm_{number}" for number in nvrtc._nvrtc().getSupportedArchs()}
    assert known - set(SHARED_KIB) == UNPUBLISHED
    assert set(SHARED_KIB) - known == OF_CUDA_12


def test_architectures_that_are_not_known(monkeypatch):
    package = kernel(Request("bitonic", 4, targets=("cuda",)))
    with pytest.raises(ToolchainError, match=r"NVRTC [\d.]+ knows no architecture 'sm_1'; known: sm_75,"):
        cubin.compiler_of(package, "sm_1")
    monkeypatch.delitem(SHARED_KIB, "sm_90")
    with pytest.raises(ToolchainError, match="nsc knows no shared memory of 'sm_90'; known for sm_70, "):
        cubin.compiler_of(package, "sm_90")
    assert cubin.compiler_of(package, "sm_90", shared_bytes=227 << 10).architecture == "sm_90"


def test_building_ahead_of_time(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nvrtc.Nvrtc, "compile", lambda self, source, binary: binary.write_text(str(self)))
    line = "compile odd_even --n 3 --target cuda,cpu --arch sm_90 --arch sm_80 --json"

    def run():
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    facts = run()
    library, *binaries = facts["binaries"]
    assert library.endswith(".so")
    for number, (architecture, part) in enumerate(itertools.product(("sm_90", "sm_80"), PARTS)):
        text = Path(binaries[number]).read_text(encoding="utf-8")
        assert f"architecture='{architecture}'" in text
        assert f"NSC_{part.upper()}" in text
    assert len(binaries) == 2 * len(PARTS)
    assert facts["targets"] == ["cpu", "cuda"]
    assert not facts["cached"]
    assert run()["cached"]
    folder = tmp_path / "generated" / "odd_even_3"
    assert 'extern "C" __global__' in (folder / "odd_even_3.cu").read_text()
    assert json.loads((folder / "manifest.json").read_text())["targets"] == ["cpu", "cuda"]

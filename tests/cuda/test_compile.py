"""The CUDA text compiles for every kind of GPU without a warning, within the limits of its target."""

from __future__ import annotations

import importlib.metadata
import json
import locale
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from compiled import cases, elf_end, exact_cases
from executed import NEWEST, OLDEST
from machine_code import MOST_REGISTERS
from test_machine_code import VERSION

from nsc.cli import main
from nsc.compiler.driver import compile_network
from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.request import Request
from nsc.compiler.schedule import WIDEST
from nsc.contract.interface import function_name
from nsc.contract.launch import FUNCTIONS, LANE_BYTES, PARTS
from nsc.errors import BuildError, ToolchainError
from nsc.runtime.build import cache, nvrtc
from nsc.runtime.devices.launches import EXACT_PAIRS, EXACT_VALUES, SHARED_KIB
from nsc.runtime.relaxed import cubin
from nsc.runtime.relaxed.kernel import Kernel

HERE = Path(__file__).parent
# The NVRTC of torch for CUDA 13.0, the first of version 13. The newest is the one that CuPy finds by itself.
OLD_NVRTC = HERE.parents[1] / ".venv" / "nvrtc-13.0"
OLD_LIBRARIES = tuple(
    OLD_NVRTC / "nvidia" / "cu13" / "lib" / name for name in ("libnvrtc-builtins.so.13.0", "libnvrtc.so.13")
)
# Architectures that NVRTC knows and whose shared memory no document states.
UNPUBLISHED = {"sm_107"}
# What CUDA 12 was the last to support.
OF_CUDA_12 = {"sm_70", "sm_72"}


def kernel(request):
    return Kernel(compile_network(request).package.files)


def compiled(package, architecture):
    return cubin.compiler_of(package, architecture).compiled(package.sources["cuda"])


def test_golden_text(generated):
    generated("bitonic_4.cu", kernel(Request("bitonic", 4, targets=("cuda",))).sources["cuda"])
    generated("best_4_exact.cu", compile_exact(4).texts["cuda"])


@pytest.mark.slow("NVRTC compiles for a minute")
@pytest.mark.parametrize(
    ("version", "part"),
    [
        ("13.0", 0),
        ("newest", 1),
        *(
            pytest.param(*each, marks=pytest.mark.nightly("each text meets both versions of NVRTC"))
            for each in (("13.0", 1), ("newest", 0))
        ),
    ],
)
def test_both_compilers_take_every_text_without_a_warning(version, part):
    libraries = []
    if version == "13.0":
        libraries = OLD_LIBRARIES
        missing = [str(path) for path in libraries if not path.exists()]
        assert not missing, (
            f"no {missing}: run make .venv/test.stamp, or python -m pip install --no-deps --target "
            f"{OLD_NVRTC} nvidia-cuda-nvrtc==13.0.88"
        )
    command = [sys.executable, HERE / "compiled.py", str(part), *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["version"] == [13, 0]) == (version == "13.0"), answer["version"]
    for name, case in cases(part).items():
        check(case, answer["cases"][name], name)
    for name in exact_cases(part):
        check_whole(answer["cases"][name], name)
        resources = answer["cases"][name]["resources"]
        assert set(resources) == {EXACT_VALUES, EXACT_PAIRS}, name
        for function in resources.values():
            assert function["registers"] <= MOST_REGISTERS, name
            assert function["spilled_bytes"] == function["stack_bytes"] == 0, name


def check_whole(results, where):
    assert results["warnings"] == [], where
    assert results["length"] == results["end"], where
    assert results["states its facts"], where


def check(case, results, where):
    check_whole(results, where)
    reals = case.request.dtypes
    assert set(results["resources"]) == {
        function_name(function, real) for function in FUNCTIONS for real in reals
    }, where
    for function, resources in results["resources"].items():
        assert resources["registers"] <= MOST_REGISTERS, (where, function)
        # Only the rows and products of a codelet that runs from its table are indexed at run time.
        indexed = WIDEST + results["longest codelet"] if case.is_tabled else 0
        stack = resources["stack_bytes"] - resources["spilled_bytes"]
        assert stack <= indexed * LANE_BYTES, (where, function)
        assert resources["spilled_bytes"] == 0 or case.is_tabled, (where, function)


def test_what_the_compiler_says_of_a_function():
    log = """ptxas info    : 77 bytes gmem
ptxas info    : Compiling entry function 'nsc_keys_f32' for 'sm_90'
ptxas info    : Function properties for nsc_keys_f32
    96 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 96 bytes cumulative stack size
ptxas info    : Compiling entry function 'nsc_sum_f32' for 'sm_90'
ptxas info    : Function properties for nsc_sum_f32
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 15 registers
"""
    assert nvrtc.resources(log) == {
        "nsc_keys_f32": nvrtc.Resources(registers=40, spilled_bytes=20, stack_bytes=96),
        "nsc_sum_f32": nvrtc.Resources(registers=15, spilled_bytes=0, stack_bytes=0),
    }


@pytest.mark.slow("NVRTC compiles for a minute")
def test_a_cubin_is_whole(tmp_path):
    """NVIDIA's disassembler takes it, and refuses one that lacks its last byte."""
    cubin, _ = compiled(kernel(Request("odd_even", 2, targets=("cuda",))), "sm_90")
    tool = next(
        Path(file.locate())
        for file in importlib.metadata.files("nvidia-cuda-nvdisasm")
        if file.name == "nvdisasm"
    )
    for length, is_whole in ((len(cubin), True), (len(cubin) - 1, False)):
        (file := tmp_path / "kernels.cubin").write_bytes(cubin[:length])
        done = subprocess.run([tool, file], capture_output=True, text=True)
        assert (done.returncode == 0) == is_whole, done.stderr
    assert nvrtc.whole(cubin[:-1]) == nvrtc.whole(cubin) == cubin
    for wrong in (cubin[:-2], cubin + b"\0", b"", b"no ELF file" * 9):
        with pytest.raises(
            BuildError, match=r"binary has [\d,]+ bytes, its header speaks of [\d,]+: install"
        ):
            nvrtc.whole(wrong)


def test_a_binary_of_other_options_is_not_taken(tmp_path, monkeypatch):
    """Binaries built without -default-device lack a byte."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path))
    package = kernel(Request("odd_even", 2, targets=("cuda",)))
    compiler = cubin.compiler_of(package, "sm_90", "forward")
    assert "-default-device" in compiler.identity
    assert "-default-device" not in compiler.command_for(Path("a.cu"), Path("a.cubin"))
    monkeypatch.setattr(nvrtc.Nvrtc, "compile", lambda self, source, binary: binary.write_text(str(self)))
    with monkeypatch.context() as before:
        before.setattr(nvrtc, "_OPTIONS_OF_NVRTC", ())
        old = cache.build(f"{package.name}_forward", package.sources["cuda"], compiler, package.manifest.nsc)
    new = cubin.build(package, "sm_90", "forward")
    assert not new.cached
    assert new.binary != old.binary
    assert cubin.build(package, "sm_90", "forward").cached


def test_parts_are_all_functions():
    package = kernel(Request("odd_even", 2, targets=("cuda",)))
    for part, functions in PARTS.items():
        _, log = cubin.compiler_of(package, "sm_90", part).compiled(package.sources["cuda"])
        assert set(nvrtc.resources(log)) == {function_name(each, "float32") for each in functions}


def test_an_architecture_that_nvrtc_does_not_know():
    with pytest.raises(ToolchainError, match=r"no architecture 'sm_12'; known: sm_75, "):
        cubin.build(kernel(Request("odd_even", 3, targets=("cuda",))), "sm_12", "forward")


def test_a_text_that_does_not_compile_says_where(monkeypatch):
    with pytest.raises(BuildError, match=r"NVRTC .* failed for sm_90(.|\n)*kernel.cu\(1\): error"):
        nvrtc.Nvrtc("sm_90", "13").compiled("int main( {}")


@pytest.mark.slow("NVRTC compiles")
def test_texts_are_read_as_before_when_nvrtc_has_compiled():
    """NVRTC 12 changes the locale of its thread."""
    before = locale.getpreferredencoding(False)
    for compiler in (NEWEST, OLDEST):
        compiler.library.ptx("", (f"--gpu-architecture={compiler.architecture}",))
        assert locale.getpreferredencoding(False) == before
    threads = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvrtc, "_nvrtc", lambda: threads.append(threading.current_thread()) or 1 / 0)
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


@pytest.mark.slow("NVRTC compiles for a minute")
def test_building_ahead_of_time(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    line = "compile odd_even --n 3 --target cuda,cpu --arch sm_90 --arch sm_80 --json"

    def run():
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    facts = run()
    for binary in facts["binaries"][1:]:
        cubin = Path(binary).read_bytes()
        assert len(cubin) == elf_end(cubin)
    assert facts["targets"] == ["cpu", "cuda"]
    assert [binary.rpartition(".")[2] for binary in facts["binaries"]] == ["so", *["cubin"] * 2 * len(PARTS)]
    assert not facts["cached"]
    assert run()["cached"]
    folder = tmp_path / "generated" / "odd_even_3"
    assert 'extern "C" __global__' in (folder / "odd_even_3.cu").read_text()
    assert json.loads((folder / "manifest.json").read_text())["targets"] == ["cpu", "cuda"]

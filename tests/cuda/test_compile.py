"""The CUDA text compiles for every kind of GPU without a warning, within the limits of its target."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from nsc.compiler.cuda import MOST_REGISTERS, WIRES_WITHOUT_SPILLS
from nsc.compiler.driver import Request, compile_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.errors import BuildError, ToolchainError
from nsc.runtime import nvrtc
from nsc.runtime.kernel import Kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
BOTH = ("float32", "float64")
REQUESTS = {
    "bitonic 4, both types, error-free": Request(
        "bitonic", 4, Relaxation("gaussian", 0.4, True), BOTH, ("cuda",)
    ),
    "no comparator, so all by table": Request(Network.from_layers(1, []), targets=("cuda",)),
    "odd-even 3": Request("odd_even", 3, Relaxation("cauchy", 0.0), targets=("cuda",)),
    "bitonic 16": Request("bitonic", 16, targets=("cuda",)),
}


def kernel(request):
    return Kernel(compile_network(request).package.files)


def compiled(made, architecture):
    return nvrtc.find_nvrtc(made, architecture).compiled(made.sources["cuda"])


def test_golden_text(golden):
    golden("bitonic_4.cu", kernel(Request("bitonic", 4, targets=("cuda",))).sources["cuda"])


@pytest.mark.parametrize(
    ("request_", "architecture"),
    [
        *((request, architecture) for request in list(REQUESTS)[:1] for architecture in ARCHITECTURES),
        *((request, "sm_90") for request in list(REQUESTS)[1:]),
    ],
)
def test_compiles_without_warnings_or_spills(request_, architecture):
    made = kernel(REQUESTS[request_])
    cubin, log = compiled(made, architecture)
    assert cubin[:4] == b"\x7fELF"
    assert made.facts["cuda"].encode() in cubin
    assert "warning" not in log
    found = nvrtc.resources(log)
    functions = {
        "keys",
        "keys_backward",
        "sum",
        "sort",
        "route",
        "route_backward",
        "reversed",
        "reversed_backward",
    }
    suffixes = [{"float32": "f32", "float64": "f64"}[real] for real in made.reals]
    assert set(found) == {"nsc_prepare"} | {f"nsc_{name}_{s}" for name in functions for s in suffixes}
    for function, (registers, spilled) in found.items():
        assert registers <= MOST_REGISTERS, function
        assert spilled == 0 or made.n > WIRES_WITHOUT_SPILLS, function


def test_the_widest_network_that_must_not_spill():
    made = kernel(Request("bitonic", WIRES_WITHOUT_SPILLS, targets=("cuda",)))
    _, log = compiled(made, "sm_90")
    assert "warning" not in log
    for function, (registers, spilled) in nvrtc.resources(log).items():
        assert registers <= MOST_REGISTERS, function
        assert spilled == 0, function


def test_an_architecture_that_nvrtc_does_not_know():
    with pytest.raises(ToolchainError, match=r"no architecture 'sm_12'; known: sm_75, "):
        nvrtc.build(kernel(REQUESTS["odd-even 3"]), "sm_12")


def test_a_text_that_does_not_compile_says_where(monkeypatch):
    with pytest.raises(BuildError, match=r"NVRTC .* failed for sm_90(.|\n)*kernel.cu\(1\): error"):
        nvrtc.Nvrtc("sm_90", "13").compiled("int main( {}")


def test_every_architecture_of_nvrtc_has_its_shared_memory():
    """But for those that are not public yet."""
    known = {f"sm_{number}" for number in nvrtc._nvrtc().getSupportedArchs()}
    assert set(nvrtc.SHARED_KIB) <= known


def test_building_ahead_of_time(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    line = "compile --net odd_even --n 3 --target cuda,cpu --arch sm_90 --arch sm_80 --json"
    command = [sys.executable, "-m", "nsc", *line.split()]

    def run():
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    facts = run()
    assert facts["targets"] == ["cpu", "cuda"]
    assert [binary.rpartition(".")[2] for binary in facts["binaries"]] == ["so", "cubin", "cubin"]
    assert not facts["cached"]
    assert run()["cached"]
    folder = tmp_path / "generated" / "odd_even_3"
    assert 'extern "C" __global__' in (folder / "odd_even_3.cu").read_text()
    assert json.loads((folder / "manifest.json").read_text())["sources"] == {
        "cpu": "odd_even_3.cpp",
        "cuda": "odd_even_3.cu",
    }

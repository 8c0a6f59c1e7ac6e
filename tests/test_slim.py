"""Catches a call that fails or warns where Python, nsc and prebuilt kernels are, and nothing else.

A namespace of Linux has the interpreter, the shared libraries of the system and what is installed. It has no
program, no compiler, no user and no configuration, as the smallest containers.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from copies import ROOT
from environments import environment, install, required

import nsc
from nsc.join import prebuilding
from nsc.runtime.build import prebuilt
from nsc.runtime.build.system import machine

ENTER = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
LEVEL = prebuilt.level_here()
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


def why_not():
    """Return why there is no namespace here; "": there is one."""
    if LEVEL is None:
        return "a processor of no level"
    if not shutil.which("unshare"):
        return "no unshare"
    return subprocess.run([*ENTER, "true"], capture_output=True, text=True).stderr.strip()


REASON = why_not()
# Changes the root, and runs a program without an environment.
INSIDE = """
import os, sys
os.chroot(sys.argv[1])
os.chdir("/tmp")
os.execve(sys.argv[2], sys.argv[2:], {"PYTHONPATH": os.environ["PYTHONPATH"]})
"""

pytestmark = [
    pytest.mark.slow("an engine is built, and processes load torch"),
    pytest.mark.skipif(bool(REASON), reason=f"no namespace of mounts: {REASON}"),
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder with the project, and the package of prebuilt kernels with its default engine."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    install(source, target)
    kernels = target / prebuilt.PACKAGE
    kernels.mkdir()
    (kernels / "__init__.py").touch()
    platform = prebuilding.PLATFORMS[f"manylinux_2_17_{machine()}"]
    prebuilding.write(*prebuilding.sources()[0], platform, LEVEL, kernels)
    return target


@pytest.fixture(scope="module")
def python(installed, tmp_path_factory):
    """Return an interpreter with what programs that call operators need."""
    return environment(tmp_path_factory.mktemp("with_torch"), required(installed, "torch"))


@pytest.fixture(scope="module")
def python_alone(installed, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("without_torch"), required(installed))


def run(python, installed, tmp_path, *command):
    """Run Python in a namespace, with warnings as errors, and return what it prints."""
    # The prefix /usr has programs and compilers too.
    own = sys.base_prefix if sys.base_prefix != "/usr" else sys._base_executable
    packages = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    seen = {*filter(os.path.isdir, LIBRARIES), own, *packages, "/proc", "/dev/null", "/dev/urandom"}
    seen |= {*map(str, (python.parents[1], installed, ROOT / "tests"))}
    root, lines = tmp_path / "root", []
    (root / "tmp").mkdir(parents=True)
    for path in sorted(seen):
        place = Path(f"{root}{path}")
        (place if os.path.isdir(path) else place.parent).mkdir(parents=True, exist_ok=True)
        if not os.path.isdir(path):
            place.touch()
        lines.append(shlex.join(["mount", "--rbind", path, str(place)]))
    warnings = ["-W", "error", "-W", "ignore::DeprecationWarning"]  # torch deprecates what it calls itself
    program = [sys.executable, "-c", INSIDE, str(root), str(python), "-B", *warnings, *command]
    done = subprocess.run(
        [*ENTER, "sh", "-ec", "\n".join([*lines, f"exec {shlex.join(program)}"])],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "interpreter",
    [
        "python_alone",
        pytest.param("python", marks=pytest.mark.nightly("another test runs torch there each day")),
    ],
)
def test_commands_and_arrays(interpreter, installed, request, tmp_path):
    program = str(ROOT / "tests" / "installed.py")
    printed = run(request.getfixturevalue(interpreter), installed, tmp_path, program, "no C++ compiler found")
    assert "prebuilt: 1 engine," in printed


OPERATORS = """
import json, sys, warnings
import torch
import nsc, nsc.nn, nsc.numpy
from nsc.cli.main import main
from nsc.runtime.build.folder import user_folder

def results(op, dtype=torch.float32):
    x = torch.linspace(-1, 1, op.n, dtype=dtype).sin().flip(0).requires_grad_()
    loss = op.cross_entropy(x, torch.arange(op.n))
    loss.backward()
    return [loss.item(), *x.grad.tolist()]

def engines(op):
    return [real for real, functions in op.kernel.library().functions.items() if functions]

assert str(user_folder()) == "/tmp/nsc-0"
main(["compile", "odd_even", "--n", "5"], standalone_mode=False)
sys.path.insert(0, "")
from generated import odd_even_5
both = nsc.compile("bitonic", 4, dtypes=("float32", "float64"))
found = [[results(op), engines(op)] for op in (nsc.load("generated/odd_even_5"), both)]
loss = odd_even_5.cross_entropy(torch.linspace(-1, 1, 5).sin().flip(0), torch.arange(5))
assert loss.item() == found[0][0][0]

layer = nsc.nn.SortingNetwork("bitonic", 8, learnable=True)
layer(torch.randn(3, 8))[0].sum().backward()
assert all(each.grad.isfinite().all() for each in layer.parameters())
x = torch.randn(200, 8)
assert torch.equal(both.hard_sort(x[:, :4])[0], x[:, :4].sort().values)
image = torch.rand(1, 1, 20, 30)
filtered = nsc.numpy.median_filter(image[0, 0].numpy(), 3)
assert torch.equal(nsc.nn.MedianFilter2d(3)(image)[0, 0], torch.from_numpy(filtered))

try:
    nsc.search(6)
except nsc.ToolchainError as error:
    assert "Install g++ or clang" in str(error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found += [[results(both, torch.float64), engines(both)] for _ in range(2)]
print(json.dumps([found, [str(line.message) for line in caught if line.category is RuntimeWarning]]))
"""


def test_operators(python, installed, tmp_path):
    """Engines that are prebuilt serve; a type without one warns once, and has the same numbers."""
    *_, last = run(python, installed, tmp_path, "-c", OPERATORS).splitlines()
    found, warnings = json.loads(last)
    program = OPERATORS.partition("assert")[0]
    names = {}
    exec(program, names)
    double = names["results"](nsc.compile("bitonic", 4, dtypes="float64"), torch.float64)
    wanted = [names["results"](nsc.compile(name, n)) for name, n in (("odd_even", 5), ("bitonic", 4))]
    for (numbers, engines), expected in zip(found, (*wanted, double, double), strict=True):
        assert engines == ["float32"]
        assert numbers == pytest.approx(expected, rel=1e-5, abs=1e-6)
    (warning,) = warnings
    assert "Install g++ or clang" in warning
    assert "runs as plain torch in float64" in warning

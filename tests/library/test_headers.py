"""Catches a header of the kernel library that does something else than its unit tests in C++ say.

Each .cpp file of this folder is a program. It includes the headers that it tests, and expect.h. A new file is
found by itself. A program for each kind of kernel runs it whole, in registers that the machine may lack; what
kernels compute is tested from Python.
"""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nsc import library

FOLDER = Path(__file__).parent
FILES = [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*.cpp"))]
FLAGS = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread")
# What takes some seconds of a processor to compile.
PASSES = ("long_pass", "merge_columns", "routing_pass")
LONG = {f"relaxed/{name}.cpp" for name in PASSES} | {"deploy/operators.cpp"}


def what_fails(path, folder, *options, compiler="g++", runner=()):
    """Build and run a file of tests; return what it prints, which is nothing if all holds."""
    program = folder / "program"
    command = [compiler, *FLAGS, *options, f"-I{library.FOLDER}", f"-I{FOLDER}", path, "-o", program]
    if path.parent.name == "deploy":
        torch = importlib.util.find_spec("torch").submodule_search_locations[0]
        command += [
            "-isystem",
            f"{torch}/include",
            f"-L{torch}/lib",
            f"-Wl,-rpath,{torch}/lib",
            "-ltorch_cpu",
        ]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([*runner, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == (1 if done.stdout else 0), (done.returncode, done.stdout, done.stderr)
    return done.stdout


def with_long_ones_slow():
    mark = pytest.mark.slow("passes of a kernel are compiled")
    return [pytest.param(name, marks=mark) if name in LONG else name for name in FILES]


@pytest.mark.parametrize("name", with_long_ones_slow())
def test_headers_do_what_they_say(name, tmp_path):
    assert what_fails(FOLDER / name, tmp_path) == ""


def test_kernels_include_headers_of_c_alone():
    """A compiler that comes without a C++ library, as ziglang does here, builds them."""
    texts = {path: path.read_text(encoding="utf-8") for path in library.FOLDER.rglob("*.h")}
    others = {
        path.name: names
        for path, text in texts.items()
        if (names := re.findall(r"^#include <([^>.]*)>", text, re.MULTILINE)) and path.parent.name != "deploy"
    }
    assert len(texts) > 20
    assert not others


@pytest.mark.nightly("the same tests in wider registers, with an optimiser, and with sanitizers")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "options", ["-O2 -mavx2 -mfma", "-O2 -mavx512f", "-O1 -fsanitize=address,undefined -fno-sanitize-recover"]
)
def test_headers_do_what_they_say_in_other_builds(options, name, tmp_path, monkeypatch):
    # Tests ask for more memory than there can be. Plans live as long as the process.
    monkeypatch.setenv("ASAN_OPTIONS", "allocator_may_return_null=1:detect_leaks=0")
    needed = re.findall("-m(avx2|avx512f)", options)
    if not set(needed) <= set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split()):
        pytest.skip(f"this processor has no {needed[0]}")
    assert what_fails(FOLDER / name, tmp_path, *options.split(), "-Wno-error") == ""


@pytest.mark.nightly("the same tests on an emulated ARM processor, in NEON registers")
@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("deploy/")])
def test_headers_do_what_they_say_on_arm(name, tmp_path):
    compiler, runner = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
    if not (shutil.which(compiler) and shutil.which(runner)):
        pytest.skip(f"{compiler} or {runner} is not installed")
    options = ("-O1", "-static", "-Wno-error")
    assert what_fails(FOLDER / name, tmp_path, *options, compiler=compiler, runner=(runner,)) == ""


WRONG = """#include "expect.h"
TEST(sums) {
    EXPECT(1 + 1 == 3);
    EXPECT_NEAR(1.5, NAN, 1);
    EXPECT_NEAR(2, 2.5, 1);
}
"""


def test_an_expectation_that_does_not_hold_is_printed(tmp_path):
    path = tmp_path / "wrong.cpp"
    path.write_text(WRONG)
    assert what_fails(path, tmp_path) == (
        f"{path}:3: sums: 1 + 1 == 3 does not hold\n{path}:4: sums: 1.5 is 1.5, not nan +- 1\n"
    )
    path.write_text('#include "expect.h"\n')
    assert what_fails(path, tmp_path) == "no test\n"

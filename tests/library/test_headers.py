"""The unit tests of the kernel library in C++: each .cpp file of this folder is a program that tests headers.

A file includes the headers that it tests, and expect.h. A new file is found by itself.
"""

import subprocess
from pathlib import Path

import pytest

from nsc import library

FOLDER = Path(__file__).parent
FILES = [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*.cpp"))]
FLAGS = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread")


def what_fails(path, folder, *options):
    """Build and run a file of tests; return what it prints, which is nothing if all holds."""
    program = folder / "program"
    command = ["g++", *FLAGS, *options, f"-I{library.FOLDER}", f"-I{FOLDER}", path, "-o", program]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert done.returncode == (1 if done.stdout else 0), (done.returncode, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("name", FILES)
def test_headers_do_what_they_say(name, tmp_path):
    assert what_fails(FOLDER / name, tmp_path) == ""


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

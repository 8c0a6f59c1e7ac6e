"""nsc doctor: on a machine where all is well, and where something is missing, broken or another user's."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import check_refused, process

import nsc
from nsc.errors import INSTALL_TORCH

pytestmark = pytest.mark.slow("kernels are built")
MORE = pytest.mark.nightly("more compilers build whole kernels")

NAMES = ["nsc", "platform", "variables", "compiler", "torch", "cuda", "cache", "kernel"]
# The command in a process without some modules.
WITHOUT = "import sys\nfor name in {}: sys.modules[name] = None\nfrom nsc.cli import main\nmain(['doctor'])"


def lines(result, code):
    """Return what a doctor found of each thing, as its mark and its text, after a look at its page."""
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    assert result.stdout.replace("\n", "").isprintable()
    *page, last = result.stdout.splitlines()
    found = {line[8:17].rstrip(): (line[:6].rstrip(), line[19:]) for line in page if line[0] != " "}
    assert list(found) == NAMES
    marks = [mark for mark, _ in found.values()]
    assert set(marks) <= {"ok", "not ok"}
    assert (marks.count("not ok") > 0) == (code == 1)
    assert last == (f"not ok: {marks.count('not ok')} of {len(marks)}" if code else "all is well")
    return found


def compiler(text):
    """Return a compiler that does something before it compiles a source, whose name is $source."""
    path = Path("mine-c++").resolve()
    path.write_text(
        '#!/bin/sh\nfor word; do case "$word" in *.cpp) source=$word;; esac; done\n'
        f'if [ "$source" ]; then {text}; fi\nexec g++ "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_where_all_is_well(tmp_path):
    place = tmp_path / "cache"
    found = lines(process("doctor", NSC_CACHE_DIR=str(place)), 0)
    assert found["nsc"][1].startswith(f"{nsc.__version__} in {Path(nsc.__file__).parent}; Python 3.")
    assert "which the first build makes" in found["cache"][1]
    assert "sorts; its gradients are the reference's" in found["kernel"][1]
    again = process("doctor", "--json", NSC_CACHE_DIR=str(place))
    facts = {finding["name"]: finding for finding in json.loads(again.stdout)}
    assert (again.returncode, list(facts)) == (0, NAMES)
    assert (facts["cache"]["ok"], facts["cache"]["text"]) == (True, str(place))


def test_without_torch_and_without_a_compiler(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(["torch", "ziglang"])],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    found = lines(done, 1)
    assert [name for name, (mark, _) in found.items() if mark == "not ok"] == ["compiler", "kernel"]
    assert "Install g++ or clang, or pip install ziglang" in found["compiler"][1]
    assert found["torch"] == ("ok", f"not installed; operators need it: {INSTALL_TORCH}")


# What a compiler does wrong, and what the report says.
BROKEN = {
    "ld: cannot find -lc": 'echo "ld: cannot find -lc" >&2; exit 1',
    "routings and gradients": 'sed -i "s/return m.keep \\* a + m.swap \\* b;/return m.keep * a;/" $source',
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_compiler_that_is_broken(words, tmp_path):
    result = process("doctor", NSC_CXX=compiler(BROKEN[words]), NSC_CACHE_DIR=str(tmp_path / "cache"))
    found = lines(result, 1)
    assert [name for name, (mark, _) in found.items() if mark == "not ok"] == ["kernel"]
    assert words in result.stdout


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
def test_a_cache_of_another_user(tmp_path):
    place = tmp_path / "cache"
    place.mkdir()
    os.chown(place, 12345, -1)
    found = lines(process("doctor", NSC_CACHE_DIR=str(place)), 1)
    mark, text = found["cache"]
    assert mark == "not ok"
    assert f"{place} belongs to user 12345, and this process to user 0" in text
    assert found["kernel"][0] == "ok"
    assert list(place.iterdir()) == []


def test_what_is_broken_beyond_nsc_ends_no_page(tmp_path):
    """A torch that cannot be imported, and a cache folder that is a file."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cannot open')")
    (tmp_path / "cache").write_text("a file")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    result = process("doctor", PYTHONPATH=path, NSC_CACHE_DIR=str(tmp_path / "cache"))
    found = lines(result, 1)
    assert [name for name, (mark, _) in found.items() if mark == "not ok"] == ["torch", "cache", "kernel"]
    assert found["torch"][1] == "OSError: libtorch_cpu.so: cannot open"
    assert f"nothing can be written in {tmp_path / 'cache'}" in found["cache"][1]


@MORE
def test_the_compiler_that_is_a_package(tmp_path):
    pytest.importorskip("ziglang", reason="the extra `compiler` is not installed")
    empty = tmp_path / "bin"
    empty.mkdir()
    result = process("doctor", PATH=str(empty), NSC_CACHE_DIR=str(tmp_path / "cache"))
    found = lines(result, 0)
    assert found["compiler"][1].startswith("clang version")
    assert shutil.which("g++") is None or "ziglang c++" in result.stdout


def test_wrong_words_are_refused():
    check_refused(["doctor", "me"])
    check_refused(["doctor", "--fast"])

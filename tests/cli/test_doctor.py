"""nsc doctor: a page that calls something well that is missing or broken, or that breaks off."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import call, check_refused, process

import nsc
from nsc.cli.doctor import _cache
from nsc.errors import INSTALL_TORCH, BuildError

pytestmark = pytest.mark.slow("kernels are built")

NAMES = ["nsc", "platform", "variables", "compiler", "torch", "cuda", "cache", "kernel"]
# The command in a process without some modules.
WITHOUT = """import sys
for name in ("torch", "ziglang"):
    sys.modules[name] = None
from nsc.cli.main import main
main(["doctor"])
"""


def found_in(page, code):
    """Return what a doctor found of each thing, as its mark and its text, after a look at its page."""
    assert page.replace("\n", "").isprintable()
    *lines, last = page.splitlines()
    found = {line[8:17].rstrip(): (line[:6].rstrip(), line[19:]) for line in lines if line[0] != " "}
    assert list(found) == NAMES
    marks = [mark for mark, _ in found.values()]
    assert set(marks) <= {"ok", "not ok"}
    assert (marks.count("not ok") > 0) == (code == 1)
    assert last == (f"not ok: {marks.count('not ok')} of {len(marks)}" if code else "all is well")
    return found


def wrong_in(result):
    """Return what the doctor of a process found, and the names of what is not well."""
    assert (result.returncode, "Traceback" in result.stdout + result.stderr) == (1, False), result
    found = found_in(result.stdout, 1)
    return found, [name for name, (mark, _) in found.items() if mark == "not ok"]


def compiler(text):
    """Return a compiler that does something before it compiles a source, whose name is $source."""
    path = Path("mine-c++").resolve()
    path.write_text(
        '#!/bin/sh\nfor word; do case "$word" in *.cpp) source=$word;; esac; done\n'
        f'if [ "$source" ]; then {text}; fi\nexec g++ "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_where_all_is_well(cache):
    found = found_in(call("doctor")[0], 0)
    assert found["nsc"][1].startswith(f"{nsc.__version__} in {Path(nsc.__file__).parent}; Python 3.")
    assert "sorts; its gradients are the reference's" in found["kernel"][1]
    facts = {finding["name"]: finding for finding in json.loads(call("doctor", "--json")[0])}
    assert list(facts) == NAMES
    assert (facts["cache"]["ok"], facts["cache"]["text"]) == (True, str(cache))
    check_refused(["doctor", "me"])
    check_refused(["doctor", "--fast"])


def test_a_cache_folder_that_is_not_there_or_is_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    assert _cache() == f"{tmp_path / 'cache'}, which the first build makes"
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(BuildError, match=f"nothing can be written in {tmp_path / 'cache'}"):
        _cache()


def test_without_torch_and_without_a_compiler(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    found, wrong = wrong_in(done)
    assert wrong == ["compiler", "kernel"]
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
    assert wrong_in(result)[1] == ["kernel"]
    assert words in result.stdout


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
def test_a_torch_that_cannot_be_imported_and_a_cache_of_another_user(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch_cpu.so: cannot open')")
    place = tmp_path / "cache"
    place.mkdir()
    os.chown(place, 12345, -1)
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    found, wrong = wrong_in(process("doctor", PYTHONPATH=path, NSC_CACHE_DIR=str(place)))
    assert wrong == ["torch", "cache", "kernel"]
    assert found["torch"][1] == "OSError: libtorch_cpu.so: cannot open"
    assert f"{place} belongs to user 12345, and this process to user 0" in found["cache"][1]
    assert list(place.iterdir()) == []


@pytest.mark.nightly("another compiler builds whole kernels")
def test_the_compiler_that_is_a_package(tmp_path):
    pytest.importorskip("ziglang", reason="the extra `compiler` is not installed")
    empty = tmp_path / "bin"
    empty.mkdir()
    result = process("doctor", PATH=str(empty), NSC_CACHE_DIR=str(tmp_path / "cache"))
    assert found_in(result.stdout, 0)["compiler"][1].startswith("clang version")
    assert shutil.which("g++") is None or "ziglang c++" in result.stdout

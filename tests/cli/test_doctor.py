"""nsc doctor: a page that calls something well that is missing or broken, or that breaks off."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import call, check_refused

import nsc
from nsc.cli.doctor import _cache
from nsc.errors import INSTALL_TORCH, BuildError

pytestmark = pytest.mark.slow("kernels are built")

NAMES = ["nsc", "platform", "variables", "compiler", "prebuilt", "torch", "cuda", "cache", "kernel"]
# The command in a process without some modules.
WITHOUT = """import sys
for name in ("torch", "ziglang"):
    sys.modules[name] = None
from nsc.cli.main import main
main(["doctor"])
"""


def found_in(page, code):
    """Return what a page says of each thing: its mark and its text."""
    *lines, last = page.splitlines()
    found = {line[8:17].rstrip(): (line[:6].rstrip(), line[19:]) for line in lines if line[0] != " "}
    assert list(found) == NAMES
    wrong = [name for name, (mark, _) in found.items() if mark != "ok"]
    assert last == (f"not ok: {len(wrong)} of {len(NAMES)}" if code else "all is well")
    return found, wrong


def test_where_all_is_well(cache):
    found, wrong = found_in(call("doctor")[0], 0)
    assert wrong == []
    assert found["nsc"][1].startswith(f"{nsc.__version__} in {Path(nsc.__file__).parent}; Python 3.")
    assert found["cache"][1] == str(cache)
    assert "sorts; its gradients are the reference's" in found["kernel"][1]
    check_refused(["doctor", "me"])


def test_a_cache_folder_that_is_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(BuildError, match=r"File exists: .*; NSC_CACHE_DIR may name another folder"):
        _cache()


def test_without_torch_and_without_a_compiler(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    found, wrong = found_in(done.stdout, 1)
    assert wrong == ["compiler", "kernel"]
    assert "Install g++ or clang, or pip install ziglang" in found["compiler"][1]
    assert found["torch"] == ("ok", f"not installed; operators need it: {INSTALL_TORCH}")


def test_a_kernel_that_is_wrong(monkeypatch):
    """What finds it is tested in tests/audit."""
    wrong = SimpleNamespace(wrong=1, inputs=8, sentence=lambda: "gradients are off")
    claim = "", "", lambda budget: [wrong]
    monkeypatch.setattr("nsc.cli.doctor.relaxed_claim", lambda files: claim)
    assert found_in(call("doctor", code=1)[0], 1)[1] == ["kernel"]
    found = {each["name"]: each for each in json.loads(call("doctor", "--json", code=1)[0])}
    assert (found["kernel"]["ok"], found["kernel"]["text"]) == (False, "BuildError: gradients are off")

"""Progress that is missing or repeated, that goes to standard output, or that a terminal keeps."""

import json
import re
import sys
from pathlib import Path

import pytest
from commands import SORTER, call
from terminal import at_a_terminal

from nsc.cli import reporting
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import write_network

pytestmark = pytest.mark.slow("commands are started and ended")


def phases(err):
    lines = err.splitlines()
    assert all(line.startswith("nsc: ") for line in lines)
    return [line.removeprefix("nsc: ") for line in lines]


def test_compile_says_each_phase_once_in_a_pipe():
    words = "compile", "bitonic", "--n", 4
    proof = ["prove by sampling", "prove by primitive", "prove by exhaustion"]
    assert phases(call(*words, "--verbose")[1]) == [
        "read",
        "transform",
        *proof,
        "schedule",
        "render",
        "build",
        "write",
    ]
    assert call(*words)[1] == ""
    out, err = call(*words, "-v", "--json")
    assert out.startswith("{")
    assert phases(err)[0] == "read"


def test_other_long_commands_say_their_phases():
    Path("sorter.json").write_text(SORTER, encoding="utf-8")
    proof = ["prove by sampling", "prove by primitive", "prove by exhaustion"]
    for line, expected in (
        ("verify sorter.json", ["read", *proof]),
        ("verify --method primitive sorter.json", ["read", "prove by sampling", "prove by primitive"]),
        ("optimize sorter.json -o out.json", ["read", *proof, "optimise", "write"]),
        ("convert sorter.json out.txt", ["read", "write"]),
    ):
        code = 3 if "primitive" in line else 0
        assert phases(call(*line.split(), "-v", code=code)[1]) == expected
        assert call(*line.split(), code=code)[1] == ""


def test_counts_follow_the_phase(monkeypatch):
    monkeypatch.setattr(reporting, "_LINES_PAUSE", 0.0)
    network = FAMILIES["best"](512)
    Path("large.cn").write_text(write_network(network, "cn") * 8, encoding="utf-8")
    err = call("verify", "large.cn", "-v", "--n", 512)[1]
    assert any(
        line.startswith("prove by reachable sets: ") and line.endswith(f"of {8 * network.size:,} comparators")
        for line in phases(err)
    )


def nsc_at_a_terminal(*words):
    return at_a_terminal([sys.executable, "-m", "nsc", *words])


# No method settles it within the time.
LONG = ("verify", "pairwise", "--n", "200", "--property", "median", "--time-limit", "3")


def test_a_terminal_shows_the_phase_of_a_long_proof_and_removes_it():
    code, out, output = nsc_at_a_terminal(*LONG, "--json")
    assert (code, json.loads(out)["verdict"]) == (3, "unproved")
    assert output.count(b"\n") == 1
    line = re.sub(rb"\x1b\[[\d;?]*[a-zA-Z]", b"", output)
    assert re.search(rb" prove by \w[^\r]* 0:00:0[2-9]", line)
    shown, removed = output.rsplit(b"\n", 1)
    assert removed.endswith(b"\x1b[1A\x1b[2K")  # up, and clear
    assert b"prove by" in shown


def test_a_terminal_shows_nothing_of_a_short_proof():
    _, out, output = nsc_at_a_terminal("verify", "best", "--n", "6")
    assert out
    assert output == b""

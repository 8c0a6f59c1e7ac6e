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
from nsc.compiler.formats import parse_network, write_network
from nsc.compiler.verify import METHODS, Budget, verify

pytestmark = pytest.mark.slow("commands are started and ended")


def phases(err):
    lines = err.splitlines()
    assert all(line.startswith("nsc: ") for line in lines)
    return [line.removeprefix("nsc: ") for line in lines]


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_compile_says_each_phase_once_in_a_pipe(option):
    words = "compile", "bitonic", "--n", 4
    proof = ["prove by sampling", "prove by primitive", "prove by exhaustion"]
    assert phases(call(*words, option)[1]) == [
        "read",
        "transform",
        *proof,
        "schedule",
        "render",
        "build",
        "write",
    ]
    assert call(*words)[1] == ""
    out, err = call(*words, option, "--json")
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
    assert any(line.startswith("read: ") and line.endswith(" comparators") for line in phases(err))
    assert any(line.startswith("prove by sampling: 1,026 ") for line in phases(err))
    assert any(
        line.startswith("prove by reachable sets: ") and line.endswith(f"of {8 * network.size:,} comparators")
        for line in phases(err)
    )
    assert any(" patterns of a join of 512 wires" in line for line in phases(err))


class Calls:
    """Records phases and counts."""

    def __init__(self):
        self.phases, self.counts = [], []

    def phase(self, name):
        self.phases.append(name)

    def count(self, unit, number, total=None):
        assert total is None or number <= total
        self.counts.append((unit, number))


def test_progress_is_not_reported_per_comparator():
    network = FAMILIES["odd_even"](512)
    calls = Calls()
    parse_network(write_network(network, "cn"), progress=calls)
    verify(FAMILIES["bitonic"](256), budget=Budget(progress=calls))
    assert len(calls.counts) < 300
    assert calls.phases[0] == "prove by sampling"
    assert all(phase.removeprefix("prove by ") in {*METHODS, "sampling"} for phase in calls.phases)


def nsc_at_a_terminal(*words, term="xterm-256color"):
    return at_a_terminal([sys.executable, "-m", "nsc", *words], term)


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


@pytest.mark.parametrize(
    ("words", "term"),
    [
        (("verify", "best", "--n", "6"), "xterm-256color"),
        pytest.param(LONG, "dumb", marks=pytest.mark.nightly("another terminal waits for a proof")),
    ],
    ids=["short", "dumb"],
)
def test_a_terminal_shows_nothing_of_a_short_proof_or_where_it_cannot_remove_it(words, term):
    _, out, output = nsc_at_a_terminal(*words, term=term)
    assert out
    assert output == b""

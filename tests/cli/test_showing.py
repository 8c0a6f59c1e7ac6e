"""nsc list, show, explain, help."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import call, check_refused

import nsc
from nsc.compiler.families import FAMILIES
from nsc.compiler.schedule import TERMS


def test_list_shows_every_family():
    out, err = call("list", "--n", 100)
    assert err == ""
    assert all(name in out for name in FAMILIES)
    assert "1,334" in out
    facts = json.loads(call("list", "--n", 33, "--json")[0])
    assert facts["n"] == 33
    assert set(facts["families"]) == set(FAMILIES)
    assert facts["families"]["merge_exchange"]["size"] == 207
    assert facts["families"]["odd_even"]["depth"] == 33


def test_list_shows_families_that_are_too_large(monkeypatch):
    monkeypatch.setattr("nsc.compiler.families.classic.MAX_SIZE", 100)
    facts = json.loads(call("list", "--n", 16, "--json")[0])["families"]
    assert facts["odd_even"]["size"] is None
    assert "merge_exchange" in facts["odd_even"]["summary"]
    assert facts["bitonic"]["size"] == 80
    assert "–" in call("list", "--n", 16)[0]


def test_show_draws_networks_that_fit():
    out, _ = call("show", "bitonic", "--n", 32)
    assert out.count("○") == 240
    assert out.splitlines()[-1] == "32 wires, 240 comparators, 15 layers"
    out, _ = call("show", "bitonic", "--n", 65)
    assert "○" not in out
    assert out.splitlines()[0] == "no diagram: 65 wires, at most 64 fit a terminal"
    Path("long.cn").write_text("0:1," * (1 << 14) + "0:1", encoding="utf-8")
    out, _ = call("show", "long.cn")
    assert out.splitlines()[0] == "no diagram: 16,385 comparators, at most 16,384 fit a terminal"
    # Piped, a diagram is whole however wide it is, and plain.
    out, _ = call("show", "odd_even", "--n", 60)
    assert {len(line) for line in out.splitlines()[:60]} == {3 + 60 * 4 + 1}
    assert "\x1b" not in out


def test_a_terminal_has_colours_and_bands():
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nsc", "show", "bitonic", "--n", "8"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "30"}
    subprocess.run(command, stdout=theirs, stderr=theirs, env=environment, timeout=60, check=True)
    os.close(theirs)
    out = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "\x1b[" in out
    plain = re.sub(r"\x1b\[[\d;]*m", "", out).splitlines()
    assert sum(line.startswith("7 ─") for line in plain) == 2
    assert max(map(len, plain[:-1])) <= 30
    assert plain[-1] == "8 wires, 24 comparators, 6 layers"


@pytest.mark.slow("commands are started and ended")
@pytest.mark.parametrize(
    "encoding",
    [
        "cp1252",
        *(
            pytest.param(each, marks=pytest.mark.nightly("more commands are started and ended"))
            for each in ("latin-1", "ascii")
        ),
    ],
)
def test_a_locale_without_these_letters_gets_others(encoding):
    def printed(*words):
        command = [sys.executable, "-m", "nsc", *words]
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=True)
        assert done.stderr == b""
        return done.stdout.decode("utf-8" if encoding == "ascii" else encoding)

    out = printed("show", "bitonic", "--n", "4")
    assert out.splitlines()[:5] == [
        "0 -o---o----o---",
        "1 -@---+o---@---",
        "2 -@---@+---o---",
        "3 -o----@---@---",
        "     :    :   :",
    ]
    for command in ("draw", "compile", "list"):
        assert "Usage" in printed(command, "--help")


@pytest.mark.slow("commands are started and ended")
@pytest.mark.parametrize("columns", ["0", "1"])
def test_a_terminal_without_width_has_a_diagram(columns):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nsc", "show", "bitonic", "--n", "4"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": columns}
    subprocess.run(command, stdout=theirs, stderr=theirs, env=environment, timeout=60, check=True)
    os.close(theirs)
    out = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert out.count("●") == 6


def test_help_and_version():
    assert nsc.__version__ in call("--version")[0]
    for command in ("compile", "verify", "convert", "list", "show"):
        assert command in call("--help")[0]
        assert "Usage" in call(command, "-h")[0]


def test_list_shows_constructions_for_the_top_k():
    out, err = call("list", "--top-k", 8, "--n", 1024)
    assert err == ""
    assert "4,972" in out
    assert "4,438" in out
    assert "24,068" in out
    facts = json.loads(call("list", "--top-k", 3, "--n", 10, "--json")[0])
    assert (facts["n"], facts["k"]) == (10, 3)
    assert facts["candidates"][0]["half_operations"] <= facts["candidates"][-1]["half_operations"]
    for bad in (["--top-k", 17], ["--top-k", 0], ["--top-k", 9, "--n", 8], ["--top-k", 2, "x"]):
        check_refused(["list", *bad])
    for bad in ([], ["--n", 8], ["bitonic"]):
        check_refused(["explain", *bad])


def test_explain_says_what_its_words_mean():
    lines = call("explain", "bitonic", "--n", 64)[0].splitlines()
    meanings = [line.partition(": ")[0] for line in lines if line.partition(": ")[0] in TERMS]
    assert meanings == [*TERMS]
    figures = " ".join(line for line in lines if line.partition(": ")[0] not in TERMS)
    assert all(term in figures for term in TERMS)

"""nsc list, records, show, explain: wrong figures or names, and diagrams that a terminal breaks."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import call, check_refused, process

import nsc
from nsc.compiler.families import FAMILIES, KINDS, LIST_DATE, found, known, selected


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
def test_a_locale_without_these_letters_gets_others():
    shown = process("show", "bitonic", "--n", 4, PYTHONIOENCODING="cp1252")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[:5] == [
        "0 -o---o----o---",
        "1 -@---+o---@---",
        "2 -@---@+---o---",
        "3 -o----@---@---",
        "     :    :   :",
    ]


def test_help_and_version():
    assert nsc.__version__ in call("--version")[0]
    assert "compile" in call("--help")[0]
    assert "Usage" in call("compile", "-h")[0]


def test_list_shows_constructions_for_the_top_k():
    out, err = call("list", "--top-k", 8, "--n", 1024)
    assert err == ""
    assert "4,972" in out
    assert "4,438" in out
    assert "24,068" in out
    facts = json.loads(call("list", "--top-k", 3, "--n", 10, "--json")[0])
    assert (facts["n"], facts["k"]) == (10, 3)
    assert facts["candidates"][0]["half_operations"] <= facts["candidates"][-1]["half_operations"]


def test_records_list_what_is_smaller_than_published():
    out, err = call("records")
    assert err == ""
    for kind in KINDS:
        assert all(entry.name in out for entry in found(kind))
    assert LIST_DATE in out
    facts = json.loads(call("records", "--json")[0])
    assert facts["list_date"] == LIST_DATE
    entries = {entry["name"]: entry for entry in facts["smaller"]}
    assert len(entries) == sum(len(found(kind)) for kind in KINDS)
    assert entries["sort_27_152_13"] == {
        "name": "sort_27_152_13",
        "property": "sort",
        "n": 27,
        "size": 152,
        "depth": 13,
        "published": 153,
        "by": "hturcotte1/depth-13-sorting-networks",
        "date": "2026-09-23",
        "how": "published 153/13 without 23:26",
    }


def test_records_of_a_number_of_wires():
    out, err = call("records", "--n", 55)
    assert err == ""
    assert [line.split()[1] for line in out.splitlines() if "_55_" in line] == [
        "sort_55_432_20",
        "sort_55_447_19",
        "median_55_279_26",
        "median_55_281_23",
        "median_55_283_21",
        "median_55_307_20",
        "median_55_315_19",
        *(entry.name for kind in selected() for entry in found(kind) if entry.network.n == 55),
    ]
    assert "lower bounds: 273 and 11 proved, the published list states 299 and 12\n" in out
    facts = json.loads(call("records", "--n", 55, "--json")[0])
    assert (facts["sort"]["size"], facts["sort"]["depth"], facts["sort"]["stated_depth"]) == (432, 19, 12)
    networks = facts["median"]["networks"]
    assert [m["size"] for m in networks] == [m.size for m in known("median")[55]]
    assert [m["by"] for m in networks] == [None, None, "nsc", "nsc", "nsc"]
    selections = json.loads(call("records", "--n", 64, "--json")[0])["selections"]
    assert "top-8" in {entry["property"] for entry in selections}
    assert {entry["published"] for entry in selections} == {None}


def test_records_beyond_the_lists():
    out, _ = call("records", "--n", 100)
    assert out == "sort: best known on 100 wires: 1,034 comparators; 26 layers; lower bounds: 579 and 12\n"
    assert json.loads(call("records", "--n", 100, "--json")[0])["median"] is None
    assert "records go up to 4,096 wires, got --n 5000" in check_refused(["records", "--n", 5000])

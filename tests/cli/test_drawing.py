"""nsc draw: a page or a picture of another network, one that is cut off, or bytes on a terminal."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import NOT_A_SORTER, SORTER, call, check_refused, paths

import nsc
from nsc.cli.main import main


def facts_of(page):
    text = Path(page).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="explorer-facts">(.*?)</script>', text, re.DOTALL)[1])


def test_draw_writes_a_page():
    assert call("draw", "bitonic", "--n", 8) == ("bitonic_8.html: bitonic, 8 wires; sorts\n", "")
    facts = facts_of("bitonic_8.html")
    assert nsc.Network.from_layers(8, facts["layers"]).digest == facts["digests"][0]["value"]
    assert facts["start"]["steepness"] == 1.5
    words = "--relaxation", "cauchy", "--art-lambda", 0, "--steepness", 3, "--error-free", "-o", "page.HTML"
    call("draw", "bitonic", "--n", 8, *words)
    start = facts_of("page.HTML")["start"]
    assert (start["sigmoid"], start["art_lambda"], start["steepness"]) == ("cauchy", 0, 3)
    assert start["form"] == "error-free"
    before = Path("bitonic_8.html").read_bytes()
    call("draw", "bitonic", "--n", 8)
    assert Path("bitonic_8.html").read_bytes() == before


def test_draw_takes_selections_and_networks_that_do_not_sort():
    Path("four.json").write_text(SORTER, encoding="utf-8")
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    out, _ = call("draw", "best", "--n", 16, "--ranks", "7,8")
    assert out == "best_16_rank_7_8.html: best, 16 wires, 2 ranks; rank-7,8: proved\n"
    assert call("draw", "four.json", "--top-k", 1)[0].startswith("four_4_top_1.html: ")
    assert call("draw", "not.txt", "-o", "x.html")[0] == "x.html: not, 3 wires; does not sort\n"
    assert facts_of("x.html")["proof"]["failure"]["mend"]["kind"] == "insert"
    assert call("draw", "best", "--n", 60, "--time-limit", 0, "-o", "y.html")[0].endswith("; unproved\n")


@pytest.mark.parametrize(
    ("file", "begins"), [("a.svg", b"<svg"), ("a.tex", rb"\begin"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")]
)
def test_draw_writes_pictures(file, begins):
    assert call("draw", "bitonic", "--n", 8, "-o", file)[0] == f"{file}: 8 wires, 24 comparators, 6 layers\n"
    content = Path(file).read_bytes()
    assert content.startswith(begins)
    call("draw", "bitonic", "--n", 8, "-o", file)
    assert Path(file).read_bytes() == content


@pytest.mark.slow("commands are started and ended")
def test_a_picture_is_refused_on_a_terminal_alone():
    words = ["draw", "bitonic", "--n", "8", "-o", "-", "--to", "png"]
    assert CliRunner().invoke(main, words).stdout_bytes.startswith(b"\x89PNG")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nsc", *words]
    shown = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True)
    assert shown.returncode == 2
    assert shown.stderr.endswith("\nError: png is not text: name a file with -o, or a pipe or > FILE\n")
    os.close(theirs)
    os.close(ours)


def test_draw_refuses_and_writes_nothing(monkeypatch):
    for bad in (
        ["bitonic", "--n", 129],
        ["insertion", "--n", 1024, "-o", "a.png"],
        ["bitonic", "--n", 8, "-o", "a.what"],
        ["bitonic", "--n", 8, "--to", "svg"],
        ["bitonic", "--n", 8, "-o", "a.svg", "--steepness", 3],
        ["bitonic", "--n", 8, "--steepness", 0],
        ["bitonic", "--n", 8, "--top-k", 9],
    ):
        check_refused(["draw", *bad])
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    _, error = call("draw", "bitonic", "--n", 8, "-o", "a.png", code=2)
    assert "pip install matplotlib" in error
    assert paths() == []

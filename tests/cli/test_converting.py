"""nsc convert and nsc optimize: a file that holds another network, or what a refused one leaves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import NOT_A_SORTER, SORTER, call, check_refused, paths

import nsc
from nsc.compiler.families import FAMILIES


def test_optimize_writes_a_smaller_network():
    out, err = call("optimize", "bitonic", "--n", 9, "--property", "median", "-o", "median.cn")
    assert err == ""
    assert "half operations" in out
    assert call("verify", "median.cn", "--n", 9, "--property", "median")[0].startswith("median: proved")
    words = "optimize", "median.cn", "--n", 9, "--property", "median", "-o", "again.json", "--json"
    facts = json.loads(call(*words)[0])
    assert facts["before"] == facts["after"]
    assert facts["size"] < FAMILIES["bitonic"](9).size
    assert facts["skipped"] is None


def test_optimize_writes_nothing_that_is_unproved():
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    assert "does not sort" in call("optimize", "not.txt", "-o", "out.json", code=1)[1]
    unproved = "optimize", "pairwise", "--n", 256, "--time-limit", 0, "-o", "out.json"
    assert "unproved" in call(*unproved, code=3)[1]
    check_refused(["optimize", "bitonic", "--n", 8, "-o", "missing/out.json"])
    assert paths() == ["not.txt"]


def test_convert_goes_by_content_and_suffix():
    Path("four.txt").write_text("[1:3][2:4][1:2][3:4][2:3]", encoding="utf-8")
    sizes = ": 4 wires, 5 comparators, 3 layers, as "
    assert call("convert", "four.txt", "four.cn")[0] == f"four.cn{sizes}cn\n"
    assert Path("four.cn").read_text(encoding="utf-8") == "0:2,1:3\n0:1,2:3\n1:2\n"
    for name in ("four.json", "four.h", "four.knuth", "four.ascii", "four.layers"):
        call("convert", "four.cn", name)
        facts = json.loads(call("verify", name, "--json")[0])
        assert facts["network"] == nsc.Network.from_layers(4, json.loads(SORTER)["layers"]).digest
    assert call("convert", "four.cn", "four.x", "--to", "svg")[0] == f"four.x{sizes}svg\n"
    assert Path("four.x").read_text(encoding="utf-8").startswith("<svg")


def test_convert_takes_options_for_reading():
    Path("a").write_text("1:3,2:4\n1:2,3:4\n2:3", encoding="utf-8")
    _, err = call("convert", "a", "b.cn", code=2)
    assert "--index-base 1" in err
    call("convert", "a", "b.cn", "--index-base", 1, "--n", 5, "--from", "cn")
    assert Path("b.cn").read_text(encoding="utf-8") == "0:2,1:3\n0:1,2:3\n1:2\n"
    assert call("convert", "b.cn", "-", "--n", 5, "--to", "sorterhunter")[0].startswith('{"N":5,')


def test_convert_says_what_a_format_does_not_hold():
    Path("a.layers").write_text("[(0,1)]\n[(2,3)]\n[(1,2)]", encoding="utf-8")
    _, err = call("convert", "a.layers", "b.cn", "--n", 5)
    assert err == (
        "nsc: note: cn has no number of wires, and some are in no comparator: read it with --n 5\n"
        "nsc: note: cn has no layers: read back, each comparator comes as early as it can (depth 2, here 3)\n"
    )
    for name in ("b.json", "b.svg", "b.dot"):
        assert call("convert", "a.layers", name, "--n", 5)[1] == ""
    assert call("convert", "a.layers", "b.txt")[1] == ""


@pytest.mark.slow("commands are started and ended")
def test_convert_is_a_filter():
    command = [sys.executable, "-m", "nsc", "convert", "-", "-"]
    result = subprocess.run(
        [*command, "--to", "ascii"],
        input=b"SWAP(0,2); SWAP(1,3); SWAP(0,1); SWAP(2,3); SWAP(1,2);",
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert "○" in result.stdout.decode()


@pytest.mark.parametrize(
    "line",
    [
        "convert",
        "convert four.cn out.zip",
        "convert four.cn out",
        "convert four.cn out.cn --to sorterhunter-log",
        "convert four.cn out.cn --from svg",
        "convert four.cn out.cn --from nsc",
        "convert four.cn out.cn --n 3",
        "convert four.cn out.cn --index-base 1",
        "convert four.cn missing/out.cn",
        "convert . out.cn",
    ],
)
def test_bad_conversions_leave_nothing(line):
    Path("four.cn").write_text("0:2,1:3\n0:1,2:3\n1:2", encoding="utf-8")
    check_refused(line.split())

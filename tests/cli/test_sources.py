"""Commands that take, refuse or write a network in another way than the others do."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import SORTER, call, check_refused

from nsc.cli.main import main
from nsc.compiler.families import family_network
from nsc.compiler.formats import write_network

# What a command needs before a network.
FIRST = {"emit": ["c"]}
# What a command needs besides a network, where it writes files or takes long.
REST = {"draw": ["-o", "out.svg"], "compile": ["--target", "cuda"]}
# Commands without a network.
OTHERS = {"cache", "doctor", "engine", "filter", "list", "records", "search"}
TAKERS = sorted(set(main.commands) - OTHERS)

FROM_ONE = "1:3,2:4\n1:2,3:4\n2:3"


def run(name, *words, text=None):
    """Run a command on a network, in this process, and return the exit code and all output."""
    result = CliRunner().invoke(
        main, [name, *FIRST.get(name, []), *map(str, words), *REST.get(name, [])], input=text
    )
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_every_command_has_the_same_options_of_networks():
    described = [{param.name: tuple(param.opts) for param in main.commands[name].params} for name in TAKERS]
    for param in ("net", "alias", "n", "format", "index_base"):
        assert len({options[param] for options in described}) == 1, param
    for name in OTHERS:
        assert not {"net", "format"} & {param.name for param in main.commands[name].params}


@pytest.mark.parametrize("name", TAKERS)
def test_every_command_takes_a_network_in_every_way(name):
    Path("four.json").write_text(SORTER, encoding="utf-8")
    Path("one.txt").write_text(FROM_ONE, encoding="utf-8")
    ways = (
        ("best", "--n", 4),
        ("best", 4),
        ("--net", "four.json"),
        ("sort_4_5_3",),
        ("one.txt", "--index-base", 1, "--format", "cn", "--n", 4),
        ("-",),
    )
    for way in ways:
        code, output = run(name, *way, text=SORTER)
        assert code == 0, (way, output)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ((), "give a network: a family with --n N, a known network, a network file, or - for standard input"),
        (("best",), "family best needs --n, the number of wires"),
        (("best", "--net", "best", "--n", 4), "the network is named twice, best and --net best"),
        (("missing.json",), "cannot read missing.json"),
        (("bitonc", 8), "nor a network file: did you mean bitonic?"),
        (("sort_16_60_11",), "no sort_16_60_11: on 16 wires there are sort_16_60_10, sort_16_61_9"),
        (("sort_16_60_10", "--n", 4), "sort_16_60_10 has 16 wires, --n 4 disagrees"),
        (("best", "--n", 4, "--format", "cn"), "takes no --format"),
        (("best", 4, "--n", 4), "the wires are named twice, 4 and --n 4"),
        (("sort_4_5_3", 4), "unexpected extra argument (4)"),
    ],
)
def test_what_names_no_network_is_refused(way, message):
    assert message in check_refused(["verify", *way]).replace("\n", " ")


@pytest.mark.slow("commands are started and ended")
@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        ("<&-", "nsc: standard input is closed: name a family or a network file instead of -\n"),
        ("0>file", "nsc: cannot read standard input: "),
    ],
)
def test_a_standard_input_that_cannot_be_read_is_refused(redirection, message):
    """What no command does with a bad name, none does with a bad standard input."""
    line = f"{sys.executable} -m nsc verify - {redirection}"
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


# ------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("name", ["convert", "optimize"])
def test_every_command_that_writes_a_network_writes_it_in_the_same_ways(name):
    expected = {to: write_network(family_network("best", 4), to) for to in ("nsc", "knuth", "cn")}
    for to, words in (("nsc", []), ("nsc", ["-"]), ("knuth", ["--to", "knuth"])):
        assert call(name, "best", "--n", 4, *words)[0] == expected[to]
    for to, words in (("cn", ["out.cn"]), ("cn", ["-o", "out.cn"]), ("knuth", ["out.cn", "--to", "knuth"])):
        call(name, "best", "--n", 4, *words)
        assert Path("out.cn").read_text(encoding="utf-8") == expected[to]
    check_refused([name, "best", "--n", 4, "out"])
    check_refused([name, "best", "--n", 4, "out.cn", "-o", "out.cn"])


def test_a_closed_standard_output_is_refused():
    line = f"{sys.executable} -m nsc convert best --n 4 >&-"
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (2, "nsc: standard output is closed: name a file with -o\n")


# ------------------------------------------------------------------------------------- what is known


def test_commands_that_judge_a_network_say_the_best_known():
    known = "best known on 9 wires: 25 comparators; 7 layers; lower bounds: 25 and 7"
    assert call("verify", "odd_even", "--n", 9)[0].splitlines()[-1] == known
    assert f"9 wires, 36 comparators, 9 layers; {known}\n" in call("explain", "odd_even", "--n", 9)[0]
    smaller = "a smaller one: nsc convert best --n 9"
    assert call("optimize", "odd_even", "--n", 9, "out.cn")[0].splitlines()[-2:] == [known, smaller]
    assert call("optimize", "best", "--n", 9, "out.cn")[0].splitlines()[-1] == known
    assert call("optimize", "odd_even", "--n", 9)[1].splitlines()[-2:] == [known, smaller]
    out, _ = call("optimize", "odd_even", "--n", 9, "--property", "median", "out.cn")
    assert out.splitlines()[-2:] == [
        "best known on 9 wires: 19 comparators; 7 layers",
        "a smaller one: nsc convert median_9_19_7",
    ]
    assert "best known" not in call("verify", "odd_even", "--n", 9, "--property", "top-2")[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("convert", "sort_4_5_3", "out.cn", "out.json"), "unexpected extra argument (out.cn)"),
        (("convert", "best", 4, "x.png"), "nsc draw NETWORK -o x.png"),
    ],
)
def test_what_else_stands_behind_a_network_is_refused(words, message):
    assert message in call(*words, code=2)[1]

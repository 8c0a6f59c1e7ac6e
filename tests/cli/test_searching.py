"""nsc search: a network or a state that is lost or replaced, searches that end too late or too soon."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from commands import call, check_refused, paths, start

import nsc
from nsc.compiler.families import best
from nsc.compiler.formats import read_network
from nsc.compiler.network import Network


def state():
    return json.loads(Path("best.txt.search.json").read_text(encoding="utf-8"))


def test_the_least_sorter_is_printed_with_what_is_known_of_it():
    out, err = call("search", "--n", 6)
    assert sum(map(len, json.loads(out)["layers"])) == 12
    assert "standard output: 12 comparators" in err
    assert "sorts: 6 wires, 12 comparators" in err
    assert re.search(r"262,144 candidates in 1 round of seed 0, \d+\.\d s", err)
    assert "best known on 6 wires: 12 comparators; 5 layers; lower bounds: 12 and 5" in err
    assert paths() == []


def test_a_search_goes_on_from_its_state():
    words = ["search", "--n", 9, "--property", "median", "--minimize", "cost", "-o", "best.txt"]
    call(*words, "--seconds", 0, code=3)
    assert (state()["rounds"], paths()) == (0, ["best.txt.search.json"])
    out, _ = call(*words, "--seconds", 1, "--json")
    first, facts = state(), json.loads(out)
    assert facts["rounds"] == first["rounds"] > 0
    assert facts["candidates"] == first["tried"] == 2**18 * first["rounds"]
    assert (facts["verdict"], facts["property"], facts["best_known"]["size"]) == ("proved", "median", 19)
    network = read_network(Path("best.txt"))
    assert facts["network"] == network.digest
    assert nsc.optimize(network, property="median").before.half_operations == facts["half_operations"]
    again = json.loads(call(*words, "--seconds", 0, "--json")[0])
    assert {**again, "seconds": 0, "search_seconds": 0} == {**facts, "seconds": 0, "search_seconds": 0}
    call(*words, "--seconds", 0.5)
    assert state()["rounds"] > first["rounds"]


def test_a_given_network_loses_what_it_does_not_need():
    larger = Network.from_layers(8, [*best(8).layers(), [(2, 3)]])
    larger.save("larger.json")
    out, _ = call("search", "--from", "larger.json", "--seconds", 0, "-o", "best.txt")
    assert "best.txt: 19 comparators, 6 layers" in out
    assert "began with 20 comparators, 7 layers" in out
    assert read_network(Path("best.txt")) == best(8)
    assert "began with 28 comparators" in call("search", "--from", "insertion", "--n", 8, "--seconds", 0)[1]
    _, err = call("search", "--from", "known", "--n", 16, "--depth", 9, "--symmetric", "--seconds", 0)
    assert "began with 61 comparators, 9 layers" in err


def test_a_network_of_another_search_is_kept():
    best(16).save("best.txt")
    check_refused(["search", "--n", 16, "--seconds", 0, "-o", "best.txt"])
    call("search", "--from", "best.txt", "--seconds", 0, "-o", "best.txt")
    assert read_network(Path("best.txt")).size == 60


def test_a_search_does_not_end_with_the_fewest_comparators_in_too_many_layers():
    assert "35 comparators, 8 layers" in call("search", "--n", 11, "--seconds", 600)[1]


def test_too_few_layers_are_not_found():
    _, err = call("search", "--n", 8, "--depth", 5, "--seconds", 0.2, "-o", "best.txt", code=3)
    assert err.startswith("nsc: no network of at most 5 layers found in")
    assert paths() == ["best.txt.search.json"]


@pytest.mark.slow("a command is started and ended")
def test_an_interrupt_keeps_the_best():
    running = start("search", "--n", 13, "--jobs", 2, "--seconds", 100, "-o", "best.txt")
    try:
        while not Path("best.txt").exists():
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        sent = time.monotonic()
        out, err = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130
    assert time.monotonic() - sent < 10
    assert err == "nsc: interrupted\n"
    assert "sorts: 13 wires" in out
    assert nsc.verify("best.txt").verdict is nsc.Verdict.PROVED
    assert paths() == ["best.txt", "best.txt.search.json"]


@pytest.mark.parametrize(
    "words",
    [
        "search",
        "search --n 65",
        "search --n 8 --property merge-4+4 --from known",
        "search --n 8 --from known --prefix 9",
        "search --n 8 --from no.json",
        "search --n 8 --json",
        "search --n 8 -o best.unknown",
    ],
)
def test_refusals(words):
    check_refused(words.split())


def test_the_state_of_another_search_is_refused():
    call("search", "--n", 4, "-o", "best.txt")
    for words in (["--seed", 1], ["--minimize", "depth"], ["--jobs", 2], ["--from", "known"]):
        check_refused(["search", "--n", "4", "-o", "best.txt", *map(str, words)])
    Path("best.txt.search.json").write_text("{", encoding="utf-8")
    check_refused(["search", "--n", "4", "-o", "best.txt"])


def test_a_search_leaves_ranks_off_as_far_as_it_may():
    words = ["--property", "median", "--off-by", 3]
    out, _ = call("search", "--n", 9, *words, "--seconds", 1, "-o", "best.txt", "--json")
    facts = json.loads(out)
    assert facts["property"] == "median, at most 3 off"
    assert facts["rank_errors"]["outputs"][0]["most_off"] == 3
    assert "\nrank 4 on wire 4: right for " in call("search", "--n", 9, *words, "--seconds", 0.1)[1]
    assert (facts["verdict"], facts["size"], facts["best_known"]) == ("proved", 3, None)
    assert call("verify", "best.txt", "--n", 9, *words)[0].startswith(
        "median, at most 3 off: proved: 9 wires, 3 comp"
    )
    call("verify", "best.txt", "--n", 9, *words[:2], "--off-by", 2, code=1)
    err = check_refused(["search", "--n", 9, *words[:2], "--off-by", 2, "-o", "best.txt"])
    assert "state of another search, median, at most 3 off of 9 wires" in err

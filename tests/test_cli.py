import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import nsc
from nsc.cli import main
from nsc.compiler import driver
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import FORMATS, readable, write_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import SIGMOIDS
from nsc.compiler.verify import Proof, Verdict

FILES = ["__init__.py", "manifest.json", "network.json", "proof.json"]
SORTER = FORMATS["nsc"].example
NOT_A_SORTER = "[(0,1)]\n[(1,2)]\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def process(*words, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "nsc", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def call(*words, code=0):
    """Run the command in this process and return what it printed, standard output and error."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result.stdout, result.stderr


def paths():
    return sorted(str(path) for path in Path().rglob("*"))


# ------------------------------------------------------------------------------------------ compile


def test_compile_writes_a_package_that_is_used_as_it_says():
    done = process("compile", "--net", "bitonic", "--n", 4)
    assert (done.returncode, done.stderr) == (0, "")
    first, proof, last = done.stdout.splitlines()
    assert first == "generated/bitonic_4: 4 wires, 6 comparators, 3 layers"
    assert proof.startswith("sorts: exhaustion: ")
    assert last.endswith("use it with: from generated import bitonic_4")
    place = Path("generated/bitonic_4")
    assert sorted(path.name for path in place.iterdir()) == sorted([*FILES, "bitonic_4.cpp"])
    code = (
        "import torch; from generated import bitonic_4\n"
        "assert bitonic_4.hard_sort(torch.tensor([3.0, 1.0, 2.0, 0.0]))[0].tolist() == [0, 1, 2, 3]"
    )
    path = os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, timeout=120)
    assert done.returncode == 0


def test_compile_for_some_ranks_writes_a_package_that_is_used_as_it_says():
    Path("small.txt").write_text("[(0,1)]\n[(1,2)]\n[(0,1)]", encoding="utf-8")
    out, _ = call("compile", "--net", "small.txt", "--ranks", "2,0", "--out", "generated")
    assert "rank-2,0: proved: exhaustion" in out
    assert out.rstrip().endswith("use it with: from generated import small_3_rank_2_0")
    code = (
        "import torch; from generated import small_3_rank_2_0 as net\n"
        "x = torch.tensor([3.0, 1.0, 2.0])\n"
        "assert net.RANKS == (2, 0) and net.hard_select(x)[0].tolist() == [3, 1]\n"
        "values, rows = net.select_with_rows(x, steepness=1000.0)\n"
        "assert torch.allclose(values, torch.tensor([3.0, 1.0]), atol=1e-3) and rows.shape == (2, 3)\n"
        "assert torch.allclose(net.route(x, torch.eye(3), 1000.0), rows) and net.select(x).shape == (2,)"
    )
    path = os.pathsep.join([".", os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "name", "ranks"),
    [
        ("--top-k 2", "bitonic_6_top_2", "[[5, 5], [4, 4]]"),
        ("--median", "bitonic_6_median", "[[2, 2], [3, 3]]"),
        ("--ranks 5,0,1,2,3,4", "bitonic_6_6_ranks", "[[5, 5], [0, 0], [1, 1]"),
        ("--top-k 1 --remove-redundant --out there", "bitonic_6_top_1", "[[5, 5]]"),
    ],
)
def test_what_is_selected_reaches_the_package_and_the_command_that_makes_it_again(words, name, ranks):
    line = f"compile --net bitonic --n 6 {words}"
    facts = json.loads(call(*line.split(), "--json")[0])
    manifest = Path(facts["folder"], "manifest.json").read_text(encoding="utf-8")
    assert facts["name"] == name
    assert json.dumps(json.loads(manifest)["outputs"]).startswith(ranks)
    assert facts["size"] < 24 or "5,0,1" in words
    again = json.loads(manifest)["command"]
    assert again == f"nsc {line.removesuffix(' --out there')}"


def test_a_second_compile_finds_all_in_place():
    call("compile", "--net", "bitonic", "--n", 4)
    place = Path("generated/bitonic_4")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in place.iterdir()}
    out, err = call("compile", "--net", "bitonic", "--n", 4)
    assert "built before" in out
    assert err == ""
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in place.iterdir()} == before


def test_the_same_command_gives_the_same_bytes_elsewhere():
    for out in ("one", "two/deep"):
        call("compile", "--net", "bitonic", "--n", 4, "--out", out)
    for path in Path("one/bitonic_4").iterdir():
        assert path.read_bytes() == (Path("two/deep/bitonic_4") / path.name).read_bytes()


def test_compile_prints_json(cache):
    out, err = call("compile", "--net", "bitonic", "--n", 4, "--json")
    facts = json.loads(out)
    assert err == ""
    assert (facts["name"], facts["n"], facts["size"], facts["depth"]) == ("bitonic_4", 4, 6, 3)
    assert (facts["proof"]["verdict"], facts["proof"]["method"]) == ("proved", "exhaustion")
    assert facts["network"] == FAMILIES["bitonic"](4).digest
    assert Path(facts["folder"], "manifest.json").is_file()
    (binary,), (command,) = facts["binaries"], facts["commands"]
    assert Path(binary).is_file()
    assert cache in Path(binary).parents
    assert binary in shlex.split(command)
    assert json.loads(call("compile", "--net", "bitonic", "--n", 4, "--json")[0])["cached"] is True


def test_verbose_shows_the_build_command():
    command = json.loads(call("compile", "--net", "bitonic", "--n", 4, "--json")[0])["commands"][0]
    assert command in call("compile", "--net", "bitonic", "--n", 4, "--verbose")[0].splitlines()
    assert command not in call("compile", "--net", "bitonic", "--n", 4)[0]


def test_every_option_reaches_the_package():
    line = (
        "compile --net odd_even --n 3 --relaxation cauchy --art-lambda 0.5 --error-free --unproved --dtype "
        "float64 --dtype float32 --dtype float64 --target cpu --out mine/nets --name three"
    )
    out, _ = call(*line.split())
    facts = json.loads(Path("mine/nets/three/manifest.json").read_text(encoding="utf-8"))
    assert (facts["sigmoid"], facts["art_lambda"], facts["error_free"]) == ("cauchy", 0.5, True)
    assert list(facts["reals"]) == ["float32", "float64"]
    assert facts["name"] == "three"
    assert "nsc.load('mine/nets/three')" in out
    words = shlex.split(facts["command"])
    assert words[:2] == ["nsc", "compile"]
    call(*words[1:], "--out", "again")
    for path in Path("mine/nets/three").iterdir():
        assert (Path("again/three") / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("text", [FORMATS[name].example for name in readable()])
def test_network_files_of_every_format_are_read(text):
    Path("four.net").write_text(text, encoding="utf-8")
    assert json.loads(call("verify", "four.net", "--json")[0])["size"] == 5
    out, _ = call("show", "--net", "four.net", "--n", 4)
    assert out.endswith("\n4 wires, 5 comparators, 3 layers\n")


def test_an_unproved_network_needs_the_users_word(monkeypatch):
    monkeypatch.setattr("nsc.compiler.verify.ladder.METHODS", {})
    out, err = call("compile", "--net", "bitonic", "--n", 4, code=3)
    assert (out, paths()) == ("", [])
    assert err.startswith("nsc: the network is unproved: ")
    assert "--unproved" in err


# ------------------------------------------------------------------------------------------- verify


def test_verify_says_what_it_found_by_its_exit_code(monkeypatch):
    Path("sorter.json").write_text(SORTER, encoding="utf-8")
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    assert call("verify", "sorter.json")[0].startswith("sorts: 4 wires, 5 comparators, 3 layers\nmethod: ")
    assert call("verify", "--net", "sorter.json") is not None
    assert call("verify", "--net", "bitonic", "--n", 100)[0].startswith("sorts: 100 wires")
    out, err = call("verify", "not.txt", code=1)
    assert out.startswith("does not sort: 3 wires, 2 comparators, 2 layers\n")
    assert err == ""
    shown = [line.partition(":")[2].split() for line in out.splitlines()[2:6]]
    network = Network.from_comparators(3, [(0, 1), (1, 2)])
    for given, comes_out in zip(shown[::2], shown[1::2], strict=True):
        values = network.apply(list(map(int, given))).tolist()
        assert list(map(str, values)) == comes_out
        assert values != sorted(values)
    monkeypatch.setattr("nsc.compiler.verify.ladder.METHODS", {})
    assert call("verify", "sorter.json", code=3)[0].startswith("unproved: ")


def test_verify_exit_codes_of_the_process():
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    for words, code in (
        (["--net", "odd_even", "--n", 5], 0),
        (["not.txt"], 1),
        (["missing.txt"], 2),
        (["--net", "pairwise", "--n", 256, "--time-limit", 0.5], 3),
    ):
        done = process("verify", *words)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_verify_prints_json():
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    facts = json.loads(call("verify", "--json", "not.txt", code=1)[0])
    assert (facts["n"], facts["size"], facts["depth"], facts["verdict"]) == (3, 2, 2, "refuted")
    assert len(facts["counterexample"]) == len(facts["failing_input"]) == 3
    assert facts["network"] == Network.from_layers(3, [[(0, 1)], [(1, 2)]]).digest
    facts = json.loads(call("verify", "--json", "--net", "bitonic", "--n", 4)[0])
    assert facts["verdict"] == "proved"
    assert facts["counterexample"] is None


def test_verify_proves_other_properties():
    words = "verify", "--net", "merge_exchange", "--n", 9
    assert call(*words, "--property", "median")[0].startswith("median: proved: 9 wires")
    out = call(*words, "--property", "top-2", "--wires", "8,7", code=1)[0]
    assert out.startswith("top-2 on wires 8,7: refuted: 9 wires")
    presorted = "--property", "sort", "--presorted", "0-3,4-7"
    merge = Network.from_layers(
        8, [[(0, 4), (1, 5), (2, 6), (3, 7)], [(2, 4), (3, 5)], [(1, 2), (3, 4), (5, 6)]]
    )
    Path("merge.json").write_text(write_network(merge), encoding="utf-8")
    assert call("verify", "merge.json", *presorted)[0].startswith("sort, presorted 0-3,4-7: proved")
    assert call("verify", "merge.json", "--property", "merge-4+4")[0].startswith("merge-4+4: proved")
    assert call("verify", "merge.json", code=1)[0].startswith("does not sort")
    for bad in (
        ["--property", "largest"],
        ["--property", "top-10"],
        ["--property", "median", "--wires", "x"],
        ["--presorted", "4-3"],
        ["--max-states", 0],
        ["--time-limit", -1],
    ):
        check_refused([*words, *bad])


def test_verify_says_what_would_mend_a_network():
    Path("less.txt").write_text("[(0,2),(1,3)]\n[(0,1),(2,3)]\n", encoding="utf-8")
    out = call("verify", "less.txt", "--n", 4, code=1)[0]
    assert "wrong on wires 1, 2, last touched in layer 1\n" in out
    assert out.endswith("mended by one comparator: insert (1, 2) behind layer 1\n")
    facts = json.loads(call("verify", "less.txt", "--n", 4, "--json", code=1)[0])
    assert (facts["wrong_wires"], facts["wrong_layer"]) == ([1, 2], 1)
    assert facts["mend"] == "insert (1, 2) behind layer 1"


def test_verify_checks_a_proof_that_was_kept():
    words = "verify", "--net", "bitonic", "--n", 8
    Path("proof.json").write_text(call(*words, "--json")[0], encoding="utf-8")
    assert call(*words, "--check", "proof.json")[0].startswith("sorts: 8 wires")
    check_refused(["verify", "--net", "odd_even", "--n", 8, "--check", "proof.json"])
    check_refused([*words, "--check", "missing.json"])
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    Path("refuted.json").write_text(call("verify", "not.txt", "--json", code=1)[0], encoding="utf-8")
    assert call("verify", "not.txt", "--check", "refuted.json", code=1)[0].startswith("does not sort")
    check_refused(["verify", "not.txt", "--check", "not.txt"])


def test_verify_runs_the_built_kernel_of_a_package(monkeypatch):
    call("compile", "--net", "best", "--n", 7, "--median", "--dtype", "float32", "--dtype", "float64")
    out, err = call("verify", "generated/best_7_median")
    assert "median: proved: 7 wires, 13 comparators" in out
    assert out.count("128 0-1 inputs, all 2^7, come out right") == 2
    assert err == ""
    facts = json.loads(call("verify", "generated/best_7_median", "--json")[0])
    assert facts["kernel"]["float64"] == {"inputs": 128, "complete": True, "what": "all 2^7", "failing": None}
    assert "says itself" in call("verify", "generated/best_7_median", "--property", "median", code=2)[1]
    call("compile", "--net", "bitonic", "--n", 4, "--target", "cuda", "--name", "for_gpus")
    assert "no CPU kernel" in call("verify", "generated/for_gpus", code=2)[1]
    # A wrong kernel: the lesser of two entries on both wires.
    right = driver.render_cpp
    wrong = "lo.both = a < b ? a : b, hi.both = a < b ? a : b;"
    monkeypatch.setattr(
        driver,
        "render_cpp",
        lambda *args: right(*args).replace("lo.both = a < b ? a : b, hi.both = a < b ? b : a;", wrong),
    )
    call("compile", "--net", "bitonic", "--n", 4, "--name", "wrong")
    out, _ = call("verify", "generated/wrong", code=1)
    assert "built kernel, float32: 0-1 input 0 0 0 0 comes out wrong" in out


def test_explain_lists_constructions_for_the_top_k():
    out, err = call("explain", "--top-k", 8, "--n", 1024)
    assert err == ""
    assert "4,972" in out
    assert "24,068" in out
    facts = json.loads(call("explain", "--top-k", 3, "--n", 10, "--json")[0])
    assert (facts["n"], facts["k"]) == (10, 3)
    assert facts["candidates"][0]["half_operations"] <= facts["candidates"][-1]["half_operations"]
    for bad in (["--top-k", 3], ["--n", 8], ["--top-k", 9, "--n", 8], ["--top-k", 2, "--n", 8, "--net", "x"]):
        check_refused(["explain", *bad])


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
    unproved = "optimize", "pairwise", "--n", 256, "--time-limit", 0.2, "-o", "out.json"
    assert "unproved" in call(*unproved, code=3)[1]
    for bad in (
        ["optimize", "bitonic", "--n", 8],
        ["optimize", "bitonic", "--n", 8, "-o", "out.what"],
        ["optimize", "bitonic", "--n", 8, "-o", "missing/out.json"],
        ["optimize", "missing.txt", "-o", "out.json"],
    ):
        check_refused(bad)
    assert sorted(path.name for path in Path().iterdir()) == ["not.txt"]


def test_verify_takes_a_family_in_the_place_of_a_file():
    assert call("verify", "bitonic", "--n", 8)[0].startswith("sorts: 8 wires")


# ------------------------------------------------------------------------------------------ convert


def test_convert_goes_by_content_and_suffix():
    Path("four.txt").write_text(FORMATS["knuth"].example, encoding="utf-8")
    line = ": 4 wires, 5 comparators, 3 layers, as "
    assert call("convert", "four.txt", "four.cn")[0] == f"four.cn{line}cn\n"
    assert Path("four.cn").read_text(encoding="utf-8") == FORMATS["cn"].example + "\n"
    for name in ("four.json", "four.dot", "four.graphml", "four.csv", "four.h", "four.table", "four.layers"):
        call("convert", "four.cn", name)
        facts = json.loads(call("verify", name, "--json")[0])
        assert facts["network"] == nsc.Network.from_layers(4, json.loads(SORTER)["layers"]).digest
    assert call("convert", "four.cn", "four.x", "--to", "svg")[0] == f"four.x{line}svg\n"
    assert Path("four.x").read_text(encoding="utf-8").startswith("<svg")


def test_convert_takes_the_users_word():
    Path("a").write_text("1:3,2:4\n1:2,3:4\n2:3", encoding="utf-8")
    _, err = call("convert", "a", "b.cn", code=2)
    assert "--index-base 1" in err
    call("convert", "a", "b.cn", "--index-base", 1, "--n", 5, "--from", "cn")
    assert Path("b.cn").read_text(encoding="utf-8") == "0:2,1:3\n0:1,2:3\n1:2\n"
    assert call("convert", "b.cn", "-", "--n", 5, "--to", "table")[0].startswith("5 5\n")


def test_convert_says_what_a_format_does_not_hold():
    Path("a.layers").write_text("[(0,1)]\n[(2,3)]\n[(1,2)]", encoding="utf-8")
    _, err = call("convert", "a.layers", "b.cn", "--n", 5)
    assert err == (
        "nsc: note: cn has no number of wires, and some are in no comparator: read it with --n 5\n"
        "nsc: note: cn has no layers: read back, each comparator comes as early as it can (depth 2, here 3)\n"
    )
    for name in ("b.json", "b.svg", "b.graphml"):
        assert call("convert", "a.layers", name, "--n", 5)[1] == ""
    assert call("convert", "a.layers", "b.csv")[1] == ""


def test_convert_is_a_filter():
    command = [sys.executable, "-m", "nsc", "convert", "-", "-"]
    for words, expected in (([], '"n": 4,'), (["--to", "ascii"], "○")):
        done = subprocess.run(
            [*command, *words],
            input=FORMATS["code"].example.encode(),
            capture_output=True,
            timeout=60,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert expected in done.stdout.decode()
    done = subprocess.run(command, input=b"\xff", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"nsc: cannot read the network file standard input: ")


def test_convert_replaces_a_file_even_its_own_source():
    Path("four.json").write_text(FORMATS["json"].example, encoding="utf-8")
    call("convert", "four.json", "four.json")
    assert json.loads(Path("four.json").read_text(encoding="utf-8"))["format"] == "nsc-network/1"
    assert paths() == ["four.json"]


@pytest.mark.parametrize("line", ["verify four.cn", "show --net four.cn", "explain --net four.cn"])
def test_every_command_reads_a_file_as_the_user_says(line):
    Path("four.cn").write_text("1:3,2:4\n1:2,3:4\n2:3", encoding="utf-8")
    check_refused(line.split())
    assert call(*line.split(), "--format", "cn", "--index-base", 1)[0]
    check_refused([*line.split(), "--format", "knuth", "--index-base", 1])


def test_compile_reads_a_file_as_the_user_says():
    Path("four.cn").write_text("1:3,2:4\n1:2,3:4\n2:3", encoding="utf-8")
    call("compile", "--net", "four.cn", "--format", "cn", "--index-base", 1)
    assert json.loads(Path("generated/four_4/network.json").read_text(encoding="utf-8"))["n"] == 4
    with pytest.raises(nsc.NetworkError, match=r"^four\.cn: "):
        nsc.compile("four.cn")
    assert nsc.compile("four.cn", format="cn", index_base=1).n == 4


@pytest.mark.parametrize(
    "line",
    [
        "convert",
        "convert four.cn",
        "convert missing.cn out.cn",
        "convert bitonic out.cn --n 4",
        "convert four.cn out.zip",
        "convert four.cn out",
        "convert four.cn out.cn --to sorterhunter-log",
        "convert four.cn out.cn --to dott",
        "convert four.cn out.cn --from svg",
        "convert four.cn out.cn --from knuth",
        "convert four.cn out.cn --n 3",
        "convert four.cn out.cn --index-base 1",
        "convert four.cn out.cn --index-base 2",
        "convert four.cn missing/out.cn",
        "convert four.cn . --to cn",
        "convert . out.cn",
        "verify --net bitonic --n 4 --format cn",
        "verify --net bitonic --n 4 --index-base 0",
        "verify four.cn --format svg",
    ],
)
def test_bad_conversions_leave_nothing(line):
    Path("four.cn").write_text(FORMATS["cn"].example, encoding="utf-8")
    check_refused(line.split())


# ------------------------------------------------------------------------------------ list and show


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
    monkeypatch.setattr("nsc.compiler.families.MAX_SIZE", 100)
    facts = json.loads(call("list", "--n", 16, "--json")[0])["families"]
    assert facts["odd_even"]["size"] is None
    assert "merge_exchange" in facts["odd_even"]["summary"]
    assert facts["bitonic"]["size"] == 80
    assert "–" in call("list", "--n", 16)[0]


def test_show_draws_networks_that_fit():
    out, _ = call("show", "--net", "bitonic", "--n", 32)
    assert out.count("○") == 240
    assert out.splitlines()[-1] == "32 wires, 240 comparators, 15 layers"
    out, _ = call("show", "--net", "bitonic", "--n", 33)
    assert "○" not in out
    assert out.splitlines()[-1] == "33 wires, 321 comparators, 21 layers"


def test_help_and_version():
    assert nsc.__version__ in call("--version")[0]
    for command in ("compile", "verify", "convert", "list", "show"):
        assert command in call("--help")[0]
        assert "Usage" in call(command, "-h")[0]


# ---------------------------------------------------------------------------------------- bad input

BAD_FILES = {
    "empty.json": b"",
    "binary.json": bytes(range(256)),
    "text.json": b"hello",
    "cut.json": b'{"format": "nsc-network/1", "n": 4, "lay',
    "no_n.json": b'{"format": "nsc-network/1", "layers": []}',
    "range.json": b'{"format": "nsc-network/1", "n": 2, "layers": [[[0, 2]]]}',
    "same.json": b'{"format": "nsc-network/1", "n": 2, "layers": [[[1, 1]]]}',
    "twice.json": b'{"format": "nsc-network/1", "n": 3, "layers": [[[0, 1], [1, 2]]]}',
    "float.json": b'{"format": "nsc-network/1", "n": 2, "layers": [[[0, 1.0]]]}',
    "huge.json": b'{"format": "nsc-network/1", "n": 1000000000000, "layers": []}',
    "deep.json": b'{"format": ' + b"[" * 100_000,
    "nested.json": b'{"N": 4, "other": {"nw": []}}',
    "code.txt": b"[(0,__import__('os').system('touch evil'))]",
    "five.txt": b"[(0,4)]",
}
BAD_LINES = [
    "compile",
    "compile --net bitonic",
    "compile --net bionic --n 4",
    "compile --net bitonic --n 0",
    "compile --net bitonic --n -4",
    "compile --net bitonic --n four",
    "compile --net bitonic --n 65537",
    "compile --net bitonic --n 99999999999999999999999",
    "compile --net odd_even --n 65536",
    "compile --net bitonic --n 4 --relaxation soft",
    "compile --net bitonic --n 4 --art-lambda 1",
    "compile --net bitonic --n 4 --art-lambda nan",
    "compile --net bitonic --n 4 --art-lambda x",
    "compile --net bitonic --n 4 --dtype int8",
    "compile --net bitonic --n 4 --target tpu",
    "compile --net bitonic --n 4 --fast",
    "compile --net bitonic --n 4 --name ../x",
    "compile --net bitonic --n 4 --name a/b",
    "compile --net bitonic --n 4 --name class",
    "compile --net bitonic --n 4 --name ''",
    f"compile --net bitonic --n 4 --name {'x' * 250}",
    "compile --net bitonic --n 4 --top-k 0",
    "compile --net bitonic --n 4 --top-k 5",
    "compile --net bitonic --n 4 --top-k two",
    "compile --net bitonic --n 4 --top-k 2 --median",
    "compile --net bitonic --n 4 --ranks 1,1",
    "compile --net bitonic --n 4 --ranks 4",
    "compile --net bitonic --n 4 --ranks 1,",
    "compile --net bitonic --n 4 --wires 1",
    "compile --net bitonic --n 4 --median --wires 1",
    "compile --net missing.json",
    "compile --net . --n 4",
    f"compile --net {'x' * 5000} --n 4",
    "compile bitonic",
    "verify",
    "verify missing.json",
    "verify missing",
    "verify --net bitonic",
    "verify --net bitonic --n 4 missing.json",
    f"verify {'x' * 5000}",
    "list --n 0",
    "list --n x",
    "show --net bitonic",
    "show --net bionic --n 4",
    "show",
    "sort",
    "--fast",
]


def check_refused(words):
    before = paths()
    out, err = call(*words, code=2)
    assert out == ""
    assert err.startswith(("nsc: ", "Usage: "))
    assert err.count("nsc: ") + err.count("Error: ") == 1
    assert err.endswith("\n")
    assert all(line.isprintable() for line in err.split("\n"))
    if err.startswith("nsc: "):
        assert err.count("\n") == 1
    assert paths() == before


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:60])
def test_bad_lines_are_refused_with_one_message(line):
    check_refused(shlex.split(line))


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("command", ["compile --net", "verify", "show --net"])
def test_bad_files_are_refused_with_one_message(name, command):
    Path(name).write_bytes(BAD_FILES[name])
    words = [*command.split(), name]
    if name == "five.txt":
        words += ["--n", "4"]
    check_refused(words)


def test_unknown_words_list_the_known_ones():
    for line, known in (
        ("compile --net bionic --n 4", FAMILIES),
        ("compile --net bitonic --n 4 --relaxation soft", SIGMOIDS),
        ("compile --net bitonic --n 4 --dtype int8", ["float32", "float64"]),
    ):
        _, err = call(*line.split(), code=2)
        assert all(word in err for word in known)
    Path("text.json").write_text("hello", encoding="utf-8")
    _, err = call("verify", "text.json", code=2)
    assert all(name in err for name in readable())


def test_a_network_that_does_not_sort_is_not_compiled():
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    before = paths()
    out, err = call("compile", "--net", "not.txt", "--unproved", code=1)
    assert out == ""
    assert err.startswith("nsc: the network does not sort: 0-1 input ")
    assert err.count("\n") == 1
    assert paths() == before


def test_a_bad_line_ends_the_process_without_a_traceback():
    done = process("compile", "--net", "bitonic", "--n", 0)
    assert (done.returncode, done.stdout, paths()) == (2, "", [])
    assert done.stderr == "nsc: bitonic needs n >= 1, got 0\n"


@pytest.mark.parametrize("out", ["file", "file/below", "x" * 300])
def test_an_output_folder_that_cannot_be_written_is_an_error(out):
    Path("file").write_text("mine", encoding="utf-8")
    _, err = call("compile", "--net", "bitonic", "--n", 4, "--out", out, code=2)
    assert err.startswith("nsc: cannot write the package to ")
    assert paths() == ["file"]
    assert Path("file").read_text(encoding="utf-8") == "mine"


def test_a_foreign_folder_is_kept():
    place = Path("generated/bitonic_4")
    place.mkdir(parents=True)
    (place / "thesis.txt").write_text("years of work", encoding="utf-8")
    before = paths()
    _, err = call("compile", "--net", "bitonic", "--n", 4, code=2)
    assert "no nsc package" in err
    assert paths() == before


@pytest.mark.parametrize(
    ("compiler", "message"),
    [("/nonexistent", "NSC_CXX is '/nonexistent'"), ("false", "the compiler does not run")],
)
def test_a_missing_or_broken_compiler_is_an_error(compiler, message):
    done = process("compile", "--net", "bitonic", "--n", 4, NSC_CXX=compiler)
    assert (done.returncode, done.stdout, paths()) == (2, "", [])
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def script(text):
    """Write a stand-in for a compiler that runs the real one unless it is to build a library."""
    path = Path("compiler.sh").resolve()
    path.write_text(f'#!/bin/sh\ncase "$*" in *.so) {text} ;; *) exec c++ "$@" ;; esac\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_compiler_that_fails_shows_its_command_and_log(tmp_path):
    compiler = script('echo "out of luck" >&2; exit 7')
    cache = tmp_path / "cache"
    done = process("compile", "--net", "bitonic", "--n", 4, NSC_CXX=str(compiler), NSC_CACHE_DIR=str(cache))
    assert (done.returncode, done.stdout, paths()) == (2, "", ["compiler.sh"])
    for part in ("exit code 7", "out of luck", f"command: {compiler}", "-std=c++17"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in cache.iterdir() if path.suffix != ".lock"]


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    compiler, cache = script("touch started; sleep 30"), tmp_path / "cache"
    running = subprocess.Popen(
        [sys.executable, "-m", "nsc", "compile", "--net", "bitonic", "--n", "4"],
        env={**os.environ, "NSC_CXX": str(compiler), "NSC_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not Path("started").exists():
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        out, err = running.communicate(timeout=30)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 130  # 1 would say that the network does not sort
    assert out == ""
    assert "Traceback" not in err
    assert paths() == ["compiler.sh", "started"]
    assert not [path for path in cache.iterdir() if path.suffix != ".lock"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_proof_that_is_ended_leaves_nothing_behind(ending):
    running = subprocess.Popen(
        [sys.executable, "-m", "nsc", "optimize", "pairwise", "--n", "200", "-o", "small.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(3)  # in the midst of it: nothing settles this network within the 20 s that SAT takes
    assert running.poll() is None
    start = time.monotonic()
    os.killpg(running.pid, ending)
    out, err = running.communicate(timeout=30)
    assert time.monotonic() - start < 5
    assert running.returncode == (130 if ending == signal.SIGINT else -ending)
    assert (out, paths()) == ("", [])
    assert "Traceback" not in err


def test_a_time_limit_ends_a_proof_with_nothing_written():
    start = time.monotonic()
    done = process("optimize", "pairwise", "--n", 200, "-o", "small.json", "--time-limit", 1)
    assert (done.returncode, done.stdout, paths()) == (3, "", [])
    assert "unproved" in done.stderr
    assert time.monotonic() - start < 15


# ------------------------------------------------------------------------------------------- output


def test_piped_output_has_no_control_characters():
    for words in (
        ["compile", "--net", "bitonic", "--n", 4],
        ["verify", "--net", "bitonic", "--n", 4],
        ["list"],
        ["show", "--net", "bitonic", "--n", 4],
    ):
        done = process(*words, FORCE_COLOR="", TERM="xterm-256color")
        assert done.returncode == 0
        assert (done.stdout + done.stderr).replace("\n", "").isprintable()


def test_output_survives_a_terminal_without_unicode():
    for words in (["list"], ["show", "--net", "bitonic", "--n", 4], ["verify", "missing…"]):
        done = process(*words, PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
        assert "Traceback" not in done.stderr


def test_a_family_list_without_docstrings():
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "nsc", "list"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_hostile_network_file_puts_nothing_into_generated_text():
    evil = "*/ system(); // '''\"\"\"; import evil #"
    name = 'x */ evil\n"""quote.json'.replace("/", "∕")
    content = {**json.loads(SORTER), "note": evil, "name": "evil", "detail": evil, evil: evil}
    Path("deep").mkdir()
    for path in (Path(name), Path("deep") / name):
        path.write_text(json.dumps(content), encoding="utf-8")
    facts = json.loads(call("compile", "--net", name, "--json")[0])
    call("compile", "--net", Path("deep", name).resolve(), "--out", "other")
    place = Path(facts["folder"])
    assert place == Path("generated/x_evil_quote_4")
    assert sorted(path.name for path in place.iterdir()) == sorted([*FILES, "x_evil_quote_4.cpp"])
    for path in place.iterdir():
        assert path.read_bytes() == (Path("other") / place.name / path.name).read_bytes()
        text = path.read_text(encoding="utf-8")
        for word in (evil, "system", "import evil", "*∕", '"""quote', str(Path.cwd())):
            assert word not in text


def test_a_hostile_file_cannot_steer_the_terminal():
    Path("evil.json").write_text('{"format":"\\u001b[2Jevil\\nall is well"}', encoding="utf-8")
    check_refused(["verify", "evil.json"])


def test_proofs_of_the_command_are_those_of_the_library():
    out, _ = call("verify", "--net", "bitonic", "--n", 8, "--json")
    proof = nsc.verify(FAMILIES["bitonic"](8))
    assert isinstance(proof, Proof)
    assert proof.verdict is Verdict.PROVED
    assert json.loads(out)["detail"] == proof.detail

"""nsc verify: a wrong verdict or exit code, a false stored proof or certificate, a wrong kernel."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import NOT_A_SORTER, SORTER, call, check_refused

from nsc import library
from nsc.compiler.formats import write_network
from nsc.compiler.network import Network
from nsc.compiler.relaxed import cpp

pytestmark = pytest.mark.slow("commands prove")

MEDIAN_OF_MEDIANS = """[(0, 1), (3, 4), (6, 7)]
[(1, 2), (4, 5), (7, 8)]
[(0, 1), (3, 4), (6, 7)]
[(1, 4)]
[(4, 7)]
[(1, 4)]
"""


def test_the_exit_code_of_verify_is_its_verdict():
    Path("sorter.json").write_text(SORTER, encoding="utf-8")
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    assert call("verify", "sorter.json")[0].startswith("sorts: 4 wires, 5 comparators, 3 layers\nmethod: ")
    assert call("verify", "bitonic", "--n", 100)[0].startswith("sorts: 100 wires")
    out, err = call("verify", "not.txt", code=1)
    assert out.startswith("does not sort: 3 wires, 2 comparators, 2 layers\n")
    assert err == ""
    vectors = [line.partition(":")[2].split() for line in out.splitlines()[2:6]]
    network = Network.from_comparators(3, [(0, 1), (1, 2)])
    for inputs, outputs in zip(vectors[::2], vectors[1::2], strict=True):
        values = network.apply(list(map(int, inputs))).tolist()
        assert list(map(str, values)) == outputs
        assert values != sorted(values)
    unproved, _ = call("verify", "pairwise", "--n", 64, "--time-limit", 0, code=3)
    assert unproved.startswith("unproved: ")


SEVERAL = """
void sort2(int *d) { S(0,1); }
void sort3(int *d) { S(0,1);S(1,2);S(0,1); }
void wrong3(int *d) { S(0,1);S(1,2); }
"""


def test_verify_judges_each_network_of_a_file():
    path = Path("sorters.c")
    path.write_text(SEVERAL, encoding="utf-8")
    message = check_refused(["verify", "sorters.c"])
    assert "3 networks in one file, sort2 (2 wires, 1 comparator, 1 layer), sort3" in message
    assert "choose one by --n" in check_refused(["verify", "sorters.c", "--n", 3])
    for words in (["compile"], ["emit", "c"]):
        message = check_refused([*words, "sorters.c"])
        assert "nsc convert FILE --name NAME OUT.json" in " ".join(message.split())
    call("convert", "sorters.c", "--name", "sort3", "out.json")
    assert call("verify", "out.json")[0].startswith("sorts: 3 wires")
    assert call("verify", "sorters.c", "--n", 2)[0].startswith("sorts: 2 wires")
    assert call("verify", "sorters.c", "--name", "sort3")[0].startswith("sorts: 3 wires")
    out, _ = call("verify", "sorters.c", "--all", code=1)
    assert out.splitlines()[::2] == [
        "sort2: 2 wires, 1 comparator, 1 layer: sorts",
        "wrong3: 3 wires, 2 comparators, 2 layers: does not sort",
    ]
    facts = [
        json.loads(line) for line in call("verify", "sorters.c", "--all", "--json", code=1)[0].splitlines()
    ]
    assert [(fact["name"], fact["verdict"]) for fact in facts][1:] == [
        ("sort3", "proved"),
        ("wrong3", "refuted"),
    ]
    out, _ = call("verify", "sorters.c", "--all", "--property", "median", code=1)
    assert out.splitlines()[1:] == [
        f"{name}: {counts}: median: {verdict}"
        for name, counts, verdict in (
            ("sort3", "3 wires, 3 comparators, 3 layers", "proved"),
            ("wrong3", "3 wires, 2 comparators, 2 layers", "refuted"),
        )
    ]
    path.write_text(SEVERAL + "void bad3(int *d) { S(0,1);S(1,2); f(d); }\n", encoding="utf-8")
    out, _ = call("verify", "sorters.c", "--all", code=2)
    assert out.splitlines()[-1].startswith("bad3: line 5: found ")
    assert "leave out --n, --name" in check_refused(["verify", "sorters.c", "--all", "--n", 3])


def test_verify_prints_json():
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    facts = json.loads(call("verify", "--json", "not.txt", code=1)[0])
    assert (facts["n"], facts["size"], facts["depth"], facts["verdict"]) == (3, 2, 2, "refuted")
    assert len(facts["counterexample"]) == len(facts["failing_input"]) == 3
    assert facts["network"] == Network.from_layers(3, [[(0, 1)], [(1, 2)]]).digest
    facts = json.loads(call("verify", "--json", "bitonic", "--n", 4)[0])
    assert facts["verdict"] == "proved"
    assert facts["counterexample"] is None


def test_verify_proves_other_properties():
    words = "verify", "merge_exchange", "--n", 9
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
    for bad in (["--property", "top-10"], ["--property", "median", "--wires", "x"], ["--presorted", "4-3"]):
        check_refused([*words, *bad])


def test_verify_says_what_would_mend_a_network():
    Path("less.txt").write_text("[(0,2),(1,3)]\n[(0,1),(2,3)]\n", encoding="utf-8")
    out = call("verify", "less.txt", "--n", 4, code=1)[0]
    assert "wrong on wires 1, 2, last touched in layer 1\n" in out
    assert "mended by one comparator: insert (1, 2) behind layer 1\n" in out
    facts = json.loads(call("verify", "less.txt", "--n", 4, "--json", code=1)[0])
    assert (facts["wrong_wires"], facts["wrong_layer"]) == ([1, 2], 1)
    assert facts["mend"] == "insert (1, 2) behind layer 1"


def test_verify_checks_a_stored_proof():
    words = "verify", "bitonic", "--n", 8
    Path("proof.json").write_text(call(*words, "--json")[0], encoding="utf-8")
    assert call(*words, "--check", "proof.json")[0].startswith("sorts: 8 wires")
    check_refused(["verify", "odd_even", "--n", 8, "--check", "proof.json"])
    check_refused([*words, "--check", "missing.json"])
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    Path("refuted.json").write_text(call("verify", "not.txt", "--json", code=1)[0], encoding="utf-8")
    assert call("verify", "not.txt", "--check", "refuted.json", code=1)[0].startswith("does not sort")
    check_refused(["verify", "not.txt", "--check", "not.txt"])


def test_verify_writes_a_certificate():
    """Of what is proved; the proof has its digest."""
    words = "verify", "bitonic", "--n", 8, "--certificate", "eight.cert"
    out = call(*words)[0]
    content = Path("eight.cert").read_bytes()
    assert content.startswith(b"nsc-certificate 1\nwires 8\nlayer ")
    digest = hashlib.sha256(content).hexdigest()
    assert f"digest of the certificate: {digest}\n" in out
    assert json.loads(call(*words, "--json")[0])["certificate"] == digest
    assert json.loads(call("verify", "bitonic", "--n", 8, "--json")[0])["certificate"] is None
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    assert "certificate" not in call("verify", "not.txt", "--certificate", "not.cert", code=1)[0]
    Path("proof.json").write_text(call("verify", "bitonic", "--n", 8, "--json")[0], encoding="utf-8")
    check_refused([*words[:4], "--check", "proof.json", "--certificate", "not.cert"])
    check_refused([*words[:4], "--certificate", "missing/not.cert"])
    assert not Path("not.cert").exists()


def test_compile_writes_a_certificate_whose_digest_the_package_has():
    words = "compile", "bitonic", "--n", 4, "--certificate", "four.cert"
    out = call(*words)[0]
    digest = hashlib.sha256(Path("four.cert").read_bytes()).hexdigest()
    assert f"digest of the certificate: {digest}\n" in out
    assert (
        json.loads(Path("generated/bitonic_4/proof.json").read_text(encoding="utf-8"))["certificate"]
        == digest
    )
    checker = Path(__file__).parents[2] / "tools" / "check_certificate.py"
    done = subprocess.run([sys.executable, checker, "four.cert"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("accepted: ")
    assert json.loads(call(*words, "--json")[0])["certificate"] == "four.cert"
    assert json.loads(call(*words[:-2], "--json")[0])["certificate"] is None
    call("verify", "generated/bitonic_4", "--certificate", "again.cert")
    assert Path("again.cert").read_bytes() == Path("four.cert").read_bytes()
    check_refused([*words, "--unproved"])


def test_verify_runs_the_built_kernel_of_a_package(monkeypatch):
    call("compile", "best", "--n", 7, "--median")
    out, err = call("verify", "generated/best_7_median")
    assert "median: proved: 7 wires, 13 comparators" in out
    for part in ("values and ranks", "exact kernel"):
        assert f"built kernel, float32, {part}: 128 0-1 inputs, all 2^7, come out right\n" in out
    assert out.endswith("built kernel, float32, routings and gradients: 33 random samples come out right\n")
    assert err == ""
    facts = json.loads(call("verify", "generated/best_7_median", "--json")[0])
    assert facts["kernel"][0] == {
        "part": "values and ranks",
        "dtype": "float32",
        "inputs": 128,
        "what": "0-1 inputs, all 2^7,",
        "complete": True,
        "wrong": None,
    }
    err = call("verify", "generated/best_7_median", "--property", "median", code=2)[1]
    assert "states its network and property itself" in err
    call("compile", "bitonic", "--n", 4, "--target", "cuda", "--name", "for_gpus")
    assert "no CPU kernel" in call("verify", "generated/for_gpus", code=2)[1]
    # A wrong kernel: it leaves the smaller of two values on both wires.
    render = cpp.render

    def render_wrong(*arguments):
        text = library.expanded(render(*arguments))
        right = "block[at[i].hi] = high - tail * gap;"
        assert right in text
        return text.replace(right, "block[at[i].hi] = low;")

    monkeypatch.setattr(cpp, "render", render_wrong)
    call("compile", "bitonic", "--n", 4, "--name", "wrong")
    out, _ = call("verify", "generated/wrong", code=1)
    assert "built kernel, float32, values and ranks: 0-1 input 0 0 0 0 comes out wrong" in out


def test_a_cut_log_is_noted_on_standard_error():
    whole = "{'N':2,'L':1,'nw':[(0,1)]}\n"
    Path("cut.log").write_text(f"{whole}{whole[:12]}", encoding="utf-8")
    out, err = call("verify", "cut.log")
    assert out.startswith("sorts: 2 wires")
    assert err == "nsc: note: line 2 of the log is cut off: line 1 is read\n"


def test_an_unproved_verdict_names_the_option_that_would_help():
    for words in (["verify"], ["compile"], ["compile", "--ranks", "19,20"]):
        out, err = call(*words, "pairwise", "--n", 40, "--time-limit", 0, code=3)
        assert "--time-limit" in out + err


def test_verify_says_what_is_wrong_with_a_stored_proof():
    words = "verify", "bitonic", "--n", 8
    facts = json.loads(call(*words, "--json")[0])
    Path("not.txt").write_text(NOT_A_SORTER, encoding="utf-8")
    refuted = json.loads(call("verify", "not.txt", "--json", code=1)[0])

    def refusal(words, proof, **changed):
        text = proof if isinstance(proof, str) else json.dumps({**proof, **changed})
        Path("proof.json").write_text(text, encoding="utf-8")
        return check_refused([*words, "--check", "proof.json"])

    for text in ("hello", "{}", SORTER):
        assert "proof.json: not a proof that nsc wrote: " in refusal(words, text)
    assert 'format "nsc-proof/7", this nsc reads nsc-proof/1' in refusal(words, facts, format="nsc-proof/7")
    digest = facts["canonical"]
    other = refusal(["verify", "odd_even", "--n", 8], facts)
    assert f"of another network: the digest of its canonical form is {digest[:12]}…, here " in other
    median = refusal([*words, "--property", "median"], facts)
    assert "is of the property 'sort', not of 'median'" in median
    for name in ("verdict", "property", "canonical", "counterexample"):
        less = {key: value for key, value in facts.items() if key != name}
        assert f'the proof was changed: "{name}" is missing' in refusal(words, less)
        assert f'"{name}"' in refusal(words, facts, **{name: {"a": 1}})
    for name, value in (("verdict", "refuted"), ("counterexample", [0] * 8), ("property", "top-9")):
        assert "the proof was changed: " in refusal(words, facts, **{name: value})
    for name, value in (("counterexample", [0, 1, 1]), ("failing_input", [0, 1, 2])):
        assert name in refusal(["verify", "not.txt"], refuted, **{name: value})


@pytest.mark.parametrize(
    ("words", "code"), [(["broken.txt"], 1), (["best", "--n", 60, "--time-limit", 0], 3)]
)
def test_a_network_that_is_not_proved_has_no_certificate(words, code):
    Path("broken.txt").write_text("[(0,1)]\n[(1,2)]\n", encoding="utf-8")
    _, err = call("verify", *words, "--certificate", "x.cert", code=code)
    verdict = {1: "refuted", 3: "unproved"}[code]
    assert err == f"nsc: note: a network that is {verdict} has no certificate: x.cert is not written\n"
    assert not Path("x.cert").exists()


def test_verify_says_how_wrong_a_network_is():
    Path("mom.txt").write_text(MEDIAN_OF_MEDIANS, encoding="utf-8")
    words = "verify", "mom.txt", "--n", 9, "--property", "median"
    line = "rank 4 on wire 4: right for 57.1 % of orders, at most 1 rank off\n"
    refuted = call(*words, code=1)[0]
    assert refuted.startswith("median: refuted: 9 wires, 12 comparators")
    assert line in refuted
    proved = call(*words, "--off-by", 1)[0]
    assert proved.startswith("median, at most 1 off: proved: 9 wires")
    assert line in proved
    facts = json.loads(call(*words, "--json", code=1)[0])["rank_errors"]
    (found,) = facts["outputs"]
    assert facts["orders"] == "all"
    assert found["shares"] == {"3": "3/14", "4": "4/7", "5": "3/14"}
    assert (found["wires"], found["rank"], found["most_off"]) == ([4], 4, 1)
    assert found["right"] == pytest.approx(4 / 7)
    assert "rank_errors" not in json.loads(call("verify", "bitonic", 8, "--json")[0])
    Path("proof.json").write_text(call(*words, "--off-by", 1, "--json")[0], encoding="utf-8")
    assert line in call("verify", "mom.txt", "--n", 9, "--check", "proof.json")[0]
    assert "is of the property" in check_refused([*words, "--check", "proof.json"])
    _, err = call(*words, "--off-by", 1, "--certificate", "x.cert")
    assert err == "nsc: note: a property that leaves ranks off has no certificate: x.cert is not written\n"
    assert "a rank is 0 to 8 off, got --off-by 9" in check_refused([*words, "--off-by", 9])

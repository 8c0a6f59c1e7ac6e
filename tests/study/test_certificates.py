"""Certificates: written by nsc, and checked by programs that have none of its code."""

from __future__ import annotations

import ast
import importlib.util
import io
import itertools
import random
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsc
from nsc.compiler.families import KINDS, found, known, selected
from nsc.compiler.network import Network
from nsc.compiler.verify import METHODS, Verdict, parse
from nsc.errors import PropertyError
from nsc.join.budget import budget_of
from nsc.runtime.build.toolchain import find_toolchain
from nsc.study.proofs import certify

LONG = pytest.mark.nightly("hundreds of proofs are checked")
ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"


def merge_of(n):
    """Return one bitonic merge of two halves."""
    half_cleaners = ([(a, a + d) for a in range(n) if not a & d] for d in (n >> k for k in range(2, 9)) if d)
    return Network.from_layers(n, [[(a, n - 1 - a) for a in range(n // 2)], *half_cleaners])


HAS_COQ = all(map(shutil.which, ("coqc", "ocamlfind", "make")))


@pytest.fixture(scope="session")
def checkers(tmp_path_factory):
    """The commands of the checkers, the verified one where there is Coq; None: Python's, in this process."""
    folder = tmp_path_factory.mktemp("checker")
    compiled = folder / "check_certificate"
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    source = ("-x", "c", str(TOOLS / "check_certificate.c"))
    command = [find_toolchain().command[0], *warnings, "-O2", *source, "-o", str(compiled)]
    subprocess.run(command, check=True)
    commands = {"Python": None, "C": (str(compiled),)}
    if HAS_COQ:
        proofs = Path(shutil.copytree(TOOLS / "coq", folder / "coq"))
        made = subprocess.run(["make"], cwd=proofs, capture_output=True, text=True, check=True)
        assert "Closed under the global context" in made.stdout
        commands["Coq"] = (str(proofs / "checker"),)
    return commands


@cache
def checker():
    """Return the checker in Python as a module."""
    specification = importlib.util.spec_from_file_location("checker", TOOLS / "check_certificate.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def check(command, *files):
    """Run a checker; return its exit code, and what it prints."""
    if command is None:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = checker().main(list(map(str, files)))
        out, err = out.getvalue(), err.getvalue()
    else:
        done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=300)
        code, out, err = done.returncode, done.stdout, done.stderr
    assert out.startswith({0: "accepted", 1: "rejected", 2: ""}[code]), (out, err)
    assert (err != "") == (code == 2), err
    return code, out + err


def certificate(network, claim="sort", methods=None):
    proof, text = certify(network, parse(claim, network.n), budget_of(), methods)
    assert text is not None, proof.detail
    return text


CASES = [
    ("one wire", Network.from_layers(1, []), "sort", None),
    ("primitive", nsc.network("odd_even", 9), "sort", None),
    ("primitive, the largest", nsc.network("odd_even", 9), "top-4", ["primitive"]),
    ("exhaustion", nsc.network("pairwise", 13), "sort", None),
    ("exhaustion of a set", nsc.network("median_10_22_8"), "median", None),
    ("exhaustion of a rank", nsc.network("median_13_32_10"), "median", None),
    ("bitonic merges", nsc.network("bitonic", 32), "sort", ["merges"]),
    ("merges filled up", nsc.network("merge_exchange", 27), "sort", ["merges"]),
    ("merges of any length", nsc.network("odd_even_merge", 29), "sort", ["merges"]),
    ("one merge", merge_of(16), "merge-8+8", ["merges"]),
    ("merges in no standard form", nsc.network("bitonic", 25), "sort", ["merges"]),
    ("patterns", nsc.network("best", 27), "sort", ["reachable sets"]),
    ("patterns of a set", nsc.network("pairwise", 24), "top-5-set", ["reachable sets"]),
    ("patterns of ranks apart", nsc.network("odd_even_merge", 25), "rank-3,9,10", ["reachable sets"]),
    ("patterns of presorted wires", nsc.network("odd_even_merge", 20), "merge-9+11", ["reachable sets"]),
    ("patterns of turned comparators", nsc.network("bitonic", 25), "rank-3,9", ["reachable sets"]),
    ("clauses", nsc.network("best", 18), "sort", ["SAT"]),
    ("clauses of turned comparators", nsc.network("bitonic", 12), "sort", ["SAT"]),
    ("clauses of presorted wires", nsc.network("odd_even_merge", 9), "merge-4+5", ["SAT"]),
]


@pytest.mark.parametrize(
    ("network", "claim", "methods"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_certificates_are_accepted(checkers, tmp_path, network, claim, methods):
    file, listed = tmp_path / "certificate", tmp_path / "network.cn"
    file.write_text(certificate(network, claim, methods), encoding="ascii")
    pairs = " ".join(f"{lo}:{hi}" for lo, hi in network.comparators.tolist())
    counts = f"{network.n} wires, {network.size} comparators, {network.depth} layers"
    for name, command in checkers.items():
        listed.write_text(pairs, encoding="ascii")
        code, words = check(command, file, listed)
        if name == "Coq" and "proof clauses" in file.read_text():
            assert code == 2, words
            continue
        assert code == 0, words
        assert words.replace("1 wire,", "1 wires,").startswith(f"accepted: {counts}")
        listed.write_text(f"{pairs} 0:1", encoding="ascii")
        assert check(command, file, listed)[0] == 1


def test_the_checker_in_python_is_a_command(tmp_path):
    file = tmp_path / "certificate"
    file.write_text(certificate(nsc.network("bitonic", 4)), encoding="ascii")
    assert check((sys.executable, TOOLS / "check_certificate.py"), file)[0] == 0


CLAIMS = [
    ("sort", {}),
    ("median", {}),
    *((f"{end}-{k}{form}", {}) for end in ("top", "bottom") for k in (1, 2, 3) for form in ("", "-set")),
    *((f"rank-{ranks}", {}) for ranks in ("0", "1", "2", "0,2", "2,0,1")),
    *((f"merge-{p}+{q}", {}) for p, q in ((1, 1), (1, 2), (2, 1))),
    ("sort", {"presorted": "0-1"}),
]


@pytest.fixture
def accepts(tmp_path):
    """Return a function that asks the checker in Python."""

    def ask(text):
        file = tmp_path / "certificate"
        file.write_text(text, encoding="ascii")
        assert check(None, file)[0] == 0, text

    return ask


@pytest.mark.parametrize("method", METHODS)
def test_every_claim_of_few_wires_is_certified_by_every_method(accepts, method):
    for n, (claim, options) in itertools.product((1, 2, 3), CLAIMS):
        with suppress(PropertyError):  # fewer wires than the claim has
            property_ = parse(claim, n, **options)
            proof, text = certify(nsc.network("odd_even", n), property_, budget_of(), [method])
            assert (text is None) == (not proof)
            if text is not None:
                accepts(text)


@pytest.mark.parametrize("method", METHODS)
def test_sets_of_any_wires_are_decided_and_certified(accepts, method):
    """Wires in any order carry a set, of sorters, renamed or not, some cut off."""
    draw, verdicts = random.Random(method), set()
    for _ in range(30):
        n = draw.randint(2, 7)
        size, wires = draw.randint(1, n), draw.choice([range(n), draw.sample(range(n), n)])
        family = draw.choice(["odd_even", "merge_exchange", "pairwise"])
        pairs = [(wires[lo], wires[hi]) for lo, hi in nsc.network(family, n).comparators.tolist()]
        if draw.random() < 0.4:
            del pairs[draw.randrange(len(pairs)) :]
        network, outputs = Network.from_comparators(n, pairs), list(wires[n - size :])
        draw.shuffle(outputs)
        property_ = parse(f"top-{size}-set", n, outputs)
        inputs = np.array(list(itertools.product((0, 1), repeat=n)), dtype=bool)
        right = not property_.fails(network, inputs).any()
        proof, text = certify(network, property_, budget_of(), [method])
        verdicts.add(proof.verdict)
        assert proof.verdict in (Verdict.UNPROVED, Verdict.PROVED if right else Verdict.REFUTED)
        if text is not None:
            accepts(text)
    assert Verdict.REFUTED in verdicts


FOUND = [each for kind in KINDS for each in found(kind)]
SELECTED = [each for kind in selected() for each in found(kind)]


def claim_of(entry):
    """Return the line of a certificate that claims the property of a network."""
    n = entry.network.n
    first = {"sort": 0, "median": (n - 1) // 2}.get(entry.kind, n - int(entry.kind.partition("-")[2] or 0))
    if entry.kind == "median" and n % 2 == 0:
        return f"set {first} {first} {first + 1}"
    last = first if entry.kind == "median" else n - 1
    return f"ranks {first} {' '.join(map(str, range(first, last + 1)))}"


@pytest.mark.parametrize("entry", [*FOUND, *SELECTED], ids=lambda entry: entry.name)
def test_networks_that_were_found_are_certified(checkers, entry):
    """Their certificates are committed, claim what the list does, and are accepted."""
    file = ROOT / "compiler" / "families" / "known" / "found" / f"{entry.name}.cert"
    claims = re.findall(r"^(?:ranks|set) .*", file.read_text(encoding="ascii"), re.MULTILINE)
    assert claims == [claim_of(entry)]
    # The checker in Python, which tests below compare with the other two, takes seconds for more wires.
    for name in ("C", "Python") if entry.network.n <= 32 else ("C",):
        assert check(checkers[name], file)[0] == 0, name


@LONG
@pytest.mark.parametrize("kind", KINDS)
def test_all_known_networks_are_certified(checkers, tmp_path, kind):
    file = tmp_path / "certificate"
    for network in itertools.chain(*known(kind).values()):
        file.write_text(certificate(network, kind), encoding="ascii")
        assert check(checkers["C"], file)[0] == 0, network


SMALL = (
    (nsc.network("odd_even", 4), "sort", None),
    (nsc.network("pairwise", 5), "sort", ["exhaustion"]),
    (nsc.network("pairwise", 6), "top-2-set", ["exhaustion"]),
    (nsc.network("odd_even_merge", 6), "merge-2+4", ["reachable sets"]),
    (nsc.network("bitonic", 4), "sort", ["merges"]),
    (nsc.network("merge_exchange", 5), "sort", ["merges"]),
    (merge_of(4), "merge-2+2", ["merges"]),
    (nsc.network("best", 5), "sort", ["reachable sets"]),
    (nsc.network("odd_even_merge", 6), "top-2-set", ["reachable sets"]),
    (nsc.network("odd_even_merge", 6), "rank-1,4", ["reachable sets"]),
    (nsc.network("bitonic", 5), "rank-1", ["reachable sets"]),
    (nsc.network("bitonic", 3), "sort", ["SAT"]),
)


@cache
def small(place):
    """Return a certificate of SMALL."""
    return certificate(*SMALL[place])


def holds(text):
    """Say whether what a text claims is true, by all inputs of zeros and ones; its proof is not looked at."""
    lines = [line.split() for line in text.splitlines()]
    n = next(int(words[1]) for words in lines if words[0] == "wires")
    pairs = [pair.split(":") for words in lines if words[0] == "layer" for pair in words[1:]]
    runs = [[int(wire) for wire in words[1:]] for words in lines if words[0] == "presorted"]
    claims = [(words[0], *map(int, words[1:])) for words in lines if words[0] in ("ranks", "set")]
    for bits in itertools.product((0, 1), repeat=n):
        if any(bits[a] > bits[b] for run in runs for a, b in itertools.pairwise(run)):
            continue
        values = list(bits)
        for lo, hi in pairs:
            low, high = int(lo), int(hi)
            values[low], values[high] = sorted((values[low], values[high]))
        right = sorted(bits)
        for word, first, *wires in claims:
            outputs = [values[wire] for wire in wires]
            if (outputs if word == "ranks" else sorted(outputs)) != right[first : first + len(wires)]:
                return False
    return True


@st.composite
def changed(draw):
    """Return a certificate with a change that a forger or an accident might make."""
    lines = small(draw(st.integers(0, len(SMALL) - 1))).splitlines(keepends=True)
    at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    words = re.split(r"([ :\n])", lines[at])
    place = draw(st.integers(0, len(words) - 1))
    match draw(st.sampled_from(["number", "word", "leave out", "twice", "swap", "line", "turn", "bytes"])):
        case "number":
            numbers = [k for k, word in enumerate(words) if re.fullmatch(r"-?[0-9]+", word)]
            if numbers:
                place = draw(st.sampled_from(numbers))
                words[place] = str(int(words[place]) + draw(st.sampled_from([-2, -1, 1, 2, 64, 1 << 40])))
            lines[at] = "".join(words)
        case "word":
            others = (
                "merge bitonic odd-even none above below inside join ranks set exhaustion primitive merges"
            )
            others = [*others.split(), "patterns", "clauses", "0", "-1", "01", "", "end"]
            words[place] = draw(st.sampled_from(others))
            lines[at] = "".join(words)
        case "leave out":
            lines[at] = "".join(words[:place] + words[place + 1 :])
        case "twice":
            lines[at] = "".join(words[:place] + words[place : place + 1] * 2 + words[place + 1 :])
        case "swap":
            lines[at], lines[other] = lines[other], lines[at]
        case "line":
            lines[at : at + 1] = draw(st.sampled_from([[], [lines[at]] * 2, [lines[other], lines[at]]]))
        case "turn":
            lines[at] = re.sub(r"([0-9]+):([0-9]+)", r"\2:\1", lines[at], count=1)
        case "bytes":
            lines[at] = lines[at] + draw(st.sampled_from(["\0", "\r\n", " ", "\n", "é", "9" * 40, "-", ":"]))
    return "".join(lines)


@settings(max_examples=75)
@given(text=changed())
def test_what_is_changed_is_rejected_unless_it_is_true(checkers, tmp_path_factory, text):
    """The checkers agree, end by themselves, and accept nothing that is wrong."""
    file = tmp_path_factory.getbasetemp() / "changed"
    file.write_bytes(text.encode())
    codes = {name: check(command, file)[0] for name, command in checkers.items()}
    assert codes["Python"] == codes["C"] in (0, 1), codes
    assert codes.get("Coq") in (None, 2, codes["C"]), codes
    if codes["C"] == 0:
        assert holds(text)


def test_the_checkers_have_no_code_of_nsc():
    modules = {
        name.split(".")[0]
        for node in ast.walk(ast.parse((TOOLS / "check_certificate.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert modules <= sys.stdlib_module_names
    c = (TOOLS / "check_certificate.c").read_text(encoding="utf-8")
    assert all(header.endswith(".h>") for header in re.findall(r"#include (.*)", c))
    assert len((TOOLS / "check_certificate.py").read_text(encoding="utf-8").splitlines()) <= 300
    assert len(c.splitlines()) <= 400

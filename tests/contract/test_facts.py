"""A manifest reads back as it was written, and refuses facts that could make a call go wrong."""

from __future__ import annotations

import dataclasses
import json

import pytest

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.contract.launch import Launch
from nsc.contract.manifest import RelaxedManifest, check_stated, digest
from nsc.contract.routings import LOSSES, ROUTINGS, Payload
from nsc.errors import PackageError


def manifest(**facts):
    defaults = RelaxedManifest(
        name="odd_even_3",
        nsc="0.1.0",
        library=library.digest(),
        command="nsc compile",
        n=3,
        size=3,
        depth=3,
        selection="ranks",
        outputs=((2, 2), (0, 0)),
        network="0" * 64,
        proof="proved",
        sigmoid="logistic",
        art_lambda=0.25,
        error_free=False,
        reals=("float32",),
        targets=("cpu", "cuda"),
        cuda=Launch(*range(1, 14)),
        files={
            "odd_even_3.cpp": "1",
            "odd_even_3.cu": "2",
            "network.json": "3",
            "proof.json": "4",
            "tables.json": "5",
            "engine_f32.cpp": "6",
        },
    )
    return dataclasses.replace(defaults, **facts)


WRONG = {
    "name": ["", "../x", "a b", 1],
    "nsc": [None, 1],
    "library": [None, 1],
    "n": [0, -1, 2.0, True, "3", None],
    "size": [-1, None],
    "depth": [-1, 1.5],
    "outputs": [
        (),
        ((0, 3),),
        ((-1, 0),),
        ((0, 0), (0, 1)),
        ((0, 1), (1, 1)),
        ((0, 0, 0),),
        ((0, True),),
        [[0, 0]],
    ],
    "art_lambda": [1, -0.1, float("nan"), True, "0.25"],
    "error_free": [0, None],
    "reals": [(), ("float16",), ("float32", "float32"), ["float32"]],
    "targets": [(), ("rocm",), ("cpu", "cpu")],
    "cuda": [None, {}],
    "files": [[], {"network.json": 1}, {1: "x"}],
}


@pytest.mark.parametrize(("fact", "value"), [(fact, value) for fact in WRONG for value in WRONG[fact]])
def test_a_wrong_fact_is_refused_and_named(fact, value):
    with pytest.raises(PackageError, match=rf"'{fact}' (is|are) .*compile the package again"):
        manifest(**{fact: value})


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", ".", ""])
def test_files_lie_in_the_folder(name):
    with pytest.raises(PackageError, match="outside the folder"):
        manifest(files={"network.json": "3", name: "1"})


def test_only_cuda_has_launch_parameters():
    assert manifest(targets=("cpu",), cuda=None).cuda is None
    with pytest.raises(PackageError, match="'cuda'"):
        manifest(targets=("cpu",))
    with pytest.raises(ValueError, match="slots must be an integer that is 0 or more, got -1"):
        Launch(-1, *range(12))


@pytest.mark.parametrize(
    "facts", [{}, {"outputs": None, "selection": None}, {"targets": ("cpu",), "cuda": None}]
)
def test_a_manifest_reads_back_as_it_was_written(facts):
    original = manifest(**facts)
    assert RelaxedManifest.from_text(original.to_text()) == original
    assert RelaxedManifest.from_text(original.to_text()).to_text() == original.to_text()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"abi": 0}, "kernel interface 0, this nsc reads 'nsc-package/2'"),
        ({"abi": True}, "kernel interface True"),
        ({"format": "nsc-package/1"}, "format 'nsc-package/1'"),
        ({"kind": "window"}, "'kind' is 'window'"),
        ({"kind": None}, "'kind' is None"),
        ({"selection": None}, "'selection' is None"),
        ({"reals": {"float32": ["float64"]}}, "'reals' is"),
        ({"targets": ["cpu"]}, "'cuda' is"),
        ({"targets": []}, "'targets' is"),
        ({"cuda": {"slots": 1}}, "'cuda' is"),
        ({"files": {"network.json": "3"}}, "does not list"),
        ({"size": 3.0}, "'size' is 3.0"),
        ({"wires": 3}, "has 'wires', which nsc does not write"),
    ],
)
def test_an_edited_manifest_is_refused(edit, message):
    text = json.dumps(json.loads(manifest().to_text()) | edit)
    with pytest.raises(PackageError, match=message):
        RelaxedManifest.from_text(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"x"', "{" * 100_000, '{"n": 1, "n": 1}'])
def test_text_that_is_no_manifest_is_refused(text):
    with pytest.raises(PackageError, match="no readable manifest"):
        RelaxedManifest.from_text(text)


def test_every_fact_is_needed():
    facts = json.loads(manifest().to_text())
    for key in facts.keys() - {"format", "abi"}:
        with pytest.raises(PackageError, match=f"'{key}'"):
            RelaxedManifest.from_text(json.dumps({k: v for k, v in facts.items() if k != key}))


def test_a_package_lists_the_digest_of_every_file():
    files = compile_network(Request("odd_even", 3, targets=("cpu", "cuda"))).package.files
    listing = RelaxedManifest.from_text(files["manifest.json"])
    assert listing.files == {name: digest(text) for name, text in files.items() if name != "manifest.json"}
    listing.check_files(files)
    with pytest.raises(PackageError, match=r"odd_even_3\.cu was changed or is missing"):
        listing.check_files(files | {"odd_even_3.cu": files["odd_even_3.cu"] + "\n"})
    for missing in ("odd_even_3.cu", "network.json", "proof.json"):
        with pytest.raises(PackageError, match=rf"does not list \['{missing}'\]"):
            listing.with_files({name: text for name, text in files.items() if name != missing})
    with pytest.raises(PackageError, match="'files'"):
        listing.with_files(dict(files) | {"network.json": "{}"})


def test_a_manifest_and_its_proof_agree():
    """Even where the manifest has the proof's digest."""
    files = dict(compile_network(Request("odd_even", 3)).package.files)
    listing, proof = RelaxedManifest.from_text(files["manifest.json"]), json.loads(files["proof.json"])
    for text, stated in (
        (json.dumps(proof | {"verdict": "unproved"}), "'unproved'"),
        ("[]", "None"),
        ("", "None"),
    ):
        files["proof.json"] = text
        edited = dataclasses.replace(listing, files={**listing.files, "proof.json": digest(text)})
        with pytest.raises(PackageError, match=rf"proof\.json says {stated}, the manifest says 'proved'"):
            edited.check_files(files)


def test_a_kernel_states_the_launch_parameters_only_for_cuda_and_the_engine_only_for_cpu():
    facts = manifest()
    cpu, cuda = json.loads(facts.stated("cpu")), json.loads(facts.stated("cuda"))
    assert cpu.keys() ^ cuda.keys() == {"cuda", "tables.json", "engine_f32.cpp"}
    assert cuda["cuda"] == dataclasses.asdict(facts.cuda)
    assert all(cpu[name] == cuda[name] for name in cpu.keys() & cuda.keys())
    check_stated(facts.stated("cpu"), facts.stated("cpu"), "here")
    with pytest.raises(PackageError, match=r"'n' is 3, and here has 4; 'size' is 3, and here has 5"):
        check_stated(facts.stated("cpu"), manifest(n=4, size=5).stated("cpu"), "here")
    for statement in (None, "", "[]", "no JSON"):
        with pytest.raises(PackageError, match="here does not state what kernel it is"):
            check_stated(facts.stated("cpu"), statement, "here")


def test_routings_are_numbered_as_kernels_know_them():
    assert [routing.code for routing in ROUTINGS.values()] == list(range(len(ROUTINGS)))
    assert {name for name, routing in ROUTINGS.items() if routing.payload is Payload.TARGET} == set(LOSSES)
    # Kernels count on it: losses come last, each with the three forms of its target.
    forms = [form for form in Payload if form.is_target]
    last = list(ROUTINGS.values())[-len(forms) * len(LOSSES) :]
    assert [(routing.loss, routing.payload) for routing in last] == [(n, f) for n in LOSSES for f in forms]

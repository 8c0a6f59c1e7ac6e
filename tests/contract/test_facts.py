"""Catches a manifest that is read though nsc did not write it, or says something else than its files."""

from __future__ import annotations

import json

import pytest

from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.contract.manifest import RelaxedManifest, digest
from nsc.contract.routings import LOSSES, ROUTINGS, Payload
from nsc.errors import PackageError

FILES = compile_network(Request("odd_even", 3, targets=("cpu", "cuda"))).package.files
FACTS = json.loads(FILES["manifest.json"])


@pytest.mark.parametrize(
    "request_", [Request("odd_even", 3, targets=("cpu", "cuda")), Request("bitonic", 6, select=top_k(2))]
)
def test_a_manifest_reads_back_as_it_was_written(request_):
    text = compile_network(request_).package.files["manifest.json"]
    assert RelaxedManifest.from_text(text).to_text() == text


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"abi": 0}, "kernel interface 0, this nsc reads 'nsc-package/2'"),
        ({"format": "nsc-package/1"}, "format 'nsc-package/1'"),
        ({"library": "0"}, "for another kernel library"),
        ({"kind": "window"}, "'kind' is 'window', not one of relaxed, filter"),
        ({"reals": {"float32": ["float64"]}}, r"'reals' is .*, and nsc writes .*bfloat16"),
        ({"reals": {"float16": ["float16"]}}, "no readable manifest of 'odd_even_3'"),
        ({"targets": ["rocm"]}, "no readable manifest of 'odd_even_3'"),
        ({"cuda": {"slots": 1}}, "no readable manifest of 'odd_even_3'"),
        ({"files": {"network.json": "3"}}, r"does not list \['odd_even_3.cpp', 'odd_even_3.cu'\]"),
        ({"files": {**FACTS["files"], "../x": "0"}}, "lists a file outside the folder"),
        ({"wires": 3}, "'wires' is 3, and nsc writes nothing"),
    ],
)
def test_a_manifest_that_nsc_would_write_otherwise_is_refused(edit, message):
    with pytest.raises(PackageError, match=message):
        RelaxedManifest.from_text(json.dumps(FACTS | edit))


@pytest.mark.parametrize("text", ["", "[]", "{" * 100_000, '{"n": 1, "n": 1}'])
def test_text_that_is_no_manifest_is_refused(text):
    with pytest.raises(PackageError, match="no readable manifest"):
        RelaxedManifest.from_text(text)


def test_every_fact_is_needed():
    for key in FACTS:
        with pytest.raises(PackageError, match=rf"'{key}'|kernel interface None|another kernel library"):
            RelaxedManifest.from_text(json.dumps({k: v for k, v in FACTS.items() if k != key}))


def test_a_package_lists_the_digest_of_every_file():
    assert RelaxedManifest.of_files(FILES).files == {
        name: digest(text) for name, text in FILES.items() if name != "manifest.json"
    }
    for name in FACTS["files"]:
        for files in (
            {**FILES, name: FILES[name] + "\n"},
            {key: text for key, text in FILES.items() if key != name},
        ):
            with pytest.raises(PackageError, match=rf"odd_even_3: {name} was changed or is missing"):
                RelaxedManifest.of_files(files)


@pytest.mark.parametrize("file", ["odd_even_3.cpp", "odd_even_3.cu"])
def test_a_source_states_the_facts_once(file):
    """A comment that states other facts, in front of the statement, is not taken for it."""
    (line,) = (line for line in FILES[file].splitlines() if "nsc_facts" in line)
    for text, message in (
        (line.replace('\\"n\\": 3', '\\"n\\": 4'), rf"'n' is 3, and {file} has 4: compile the package again"),
        (line + "\n//" + line, f"{file} does not state what kernel it is"),
        (line.replace("nsc_facts", "facts"), f"{file} does not state what kernel it is"),
        (line.replace('"{', '"', 1), f"{file} does not state what kernel it is"),
    ):
        source = FILES[file].replace(line, text)
        manifest = json.dumps(FACTS | {"files": {**FACTS["files"], file: digest(source)}})
        with pytest.raises(PackageError, match=message):
            RelaxedManifest.of_files({**FILES, file: source, "manifest.json": manifest})


def test_routings_are_numbered_as_kernels_know_them():
    assert [routing.code for routing in ROUTINGS.values()] == list(range(len(ROUTINGS)))
    assert {name for name, routing in ROUTINGS.items() if routing.payload is Payload.TARGET} == set(LOSSES)
    # Kernels count on it: losses come last, each with the three forms of its target.
    forms = [form for form in Payload if form.is_target]
    last = list(ROUTINGS.values())[-len(forms) * len(LOSSES) :]
    assert [(routing.loss, routing.payload) for routing in last] == [(n, f) for n in LOSSES for f in forms]

"""Catches a package that is loaded though a fact, the network, the proof or a source was edited."""

from __future__ import annotations

import dataclasses
import functools
import json

import pytest

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract import manifest as manifests
from nsc.contract.manifest import digest
from nsc.contract.windows import Window
from nsc.join.budget import budget_of

pytestmark = pytest.mark.slow("every field of packages is edited")

BOTH, UNPROVED = ("cpu", "cuda"), Request("pairwise", 40, unproved=True, name="unproved")
PACKAGES = {
    "sorter": lambda: compile_network(Request("bitonic", 4, targets=BOTH)).package,
    "selector": lambda: compile_network(Request("bitonic", 6, select=top_k(2))).package,
    "unproved": lambda: compile_network(UNPROVED, budget_of(time_limit=0)).package,
    "filter": lambda: compile_filter(Window.of((2, 3), 1)).package,
}
JSON = ("manifest.json", "proof.json", "network.json")
# What may be edited, in packages of every kind, and why.
HARMLESS = {
    ("manifest.json", "nsc"): "a build does not depend on it",
    ("manifest.json", "command"): "it is shown, and nothing depends on it",
}


# Files that need not be listed, since no call depends on them; a package's C header is another one.
READ_BY_USERS = {"__init__.py"}


@functools.cache
def files_of(kind):
    return PACKAGES[kind]().files


@pytest.fixture(params=PACKAGES)
def kind(request):
    return request.param


def changed(value):
    """Return values that are near to a value, far from it, or of another type."""
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int | float):
        near = [0, -1, value - 1, value + 1, 2 * value, 1 << 40, float(value)]
        return [*near, str(value), True, None, [value]]
    if isinstance(value, str):
        return ["", f"{value}x", "float64", "../x", None, 1, [value]]
    return [None, 1, "x", [] if isinstance(value, dict) else {}]


def edits(value, depth):
    """Yield a JSON value with one part changed, left out or repeated, in every way, down to some depth."""
    yield from changed(value)
    if isinstance(value, dict) and depth:
        for key, part in value.items():
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, key: edit} for edit in edits(part, depth - 1))
        yield {**value, "float64": ["float64"]}
    if isinstance(value, list) and depth:
        yield from (value[:-1], value[::-1], [*value, *value[:1]])
        for index, part in enumerate(value):
            yield from ([*value[:index], edit, *value[index + 1 :]] for edit in edits(part, depth - 1))


def refusal(folder, files):
    """Return why a package is not loaded with some other files; None: it is."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    try:
        nsc.load(folder)
    except nsc.PackageError as error:
        return str(error)
    return None


def with_digests(files, texts):
    """Return a package's manifest with other texts, and their digests made anew."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] |= {name: digest(text) for name, text in texts.items()}
    return {**texts, "manifest.json": json.dumps(manifest)}


def test_packages_of_every_kind_are_edited_and_have_every_fact_of_it():
    found = {json.loads(files_of(kind)["manifest.json"])["kind"] for kind in PACKAGES}
    assert found == manifests.KINDS.keys()
    for kind in PACKAGES:
        facts = json.loads(files_of(kind)["manifest.json"])
        of_kind = {field.name for field in dataclasses.fields(manifests.KINDS[facts["kind"]])}
        assert facts.keys() == of_kind | {"format", "abi", "kind"}


def test_every_fact_of_a_package_of_every_kind_is_checked_when_it_is_loaded(kind, tmp_path):
    """Facts change, change their type, or are left out, in manifest, proof and network."""
    files = dict(files_of(kind))
    assert refusal(tmp_path, files) is None
    accepted, count = [], 0
    for file in JSON:
        facts = json.loads(files[file])
        if "command" in facts:  # refusals are worded as in Python
            facts["command"] = "by hand"
        for key, value in facts.items():
            values = [*edits(value, 3 if file == "manifest.json" else 0)]
            values += manifests.KINDS if key == "kind" else ()
            less = {name: each for name, each in facts.items() if name != key}
            for edit in (less, *({**facts, key: each} for each in values)):
                text = json.dumps(edit)
                if text == json.dumps(facts):
                    continue
                other = {file: text} if file == "manifest.json" else with_digests(files, {file: text})
                message = refusal(tmp_path, {name: files[name] for name in JSON} | other)
                count += 1
                if message is not None:
                    assert "\n" not in message
                elif key == "files":
                    assert value.keys() - edit["files"].keys() <= READ_BY_USERS | {f"{facts['name']}_c.h"}
                else:
                    accepted.append((file, key))
    assert count > 150
    assert set(accepted) <= HARMLESS.keys()


def test_a_verdict_edited_in_the_proof_and_in_the_manifest_is_refused(kind, tmp_path):
    files = dict(files_of(kind))
    proof = json.loads(files["proof.json"])
    for verdict in {"refuted", "proved", "unproved", "", None} - {proof["verdict"]}:
        edited = with_digests(files, {"proof.json": json.dumps(proof | {"verdict": verdict})})
        manifest = json.loads(edited["manifest.json"]) | {"proof": verdict}
        why = refusal(tmp_path, {**files, **edited, "manifest.json": json.dumps(manifest)})
        assert "'proof.json' is " in why


def test_another_network_with_its_facts_is_refused(tmp_path):
    files = dict(files_of("sorter"))
    for n in (2, 64):
        network = json.dumps({"format": "nsc-network/1", "n": n, "layers": [[[0, 1]]]})
        edited = with_digests(files, {"network.json": network})
        facts = {"n": n, "size": 1, "depth": 1}
        manifest = json.dumps(json.loads(edited["manifest.json"]) | facts)
        assert "has 4" in refusal(tmp_path, {**files, **edited, "manifest.json": manifest})


def test_a_package_of_another_kind_is_refused():
    relaxed, filter_ = files_of("sorter"), files_of("filter")
    with pytest.raises(nsc.PackageError, match=r"'rank_1_2x3' is .*'filter', not 'relaxed': use nsc\.load"):
        nsc.Sorter(filter_)
    with pytest.raises(nsc.PackageError, match=r"'bitonic_4' is .*'relaxed', not 'filter': use nsc\.load"):
        nsc.Filter(relaxed)

"""A manifest agrees with the network and the built kernel, or the package is refused."""

import ctypes
import dataclasses
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from edit_manifests import changed

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.package import write
from nsc.compiler.request import Request
from nsc.compiler.selection import top_k
from nsc.compiler.windows import Window
from nsc.compiler.windows.compiling import compile_filter
from nsc.contract import manifest as manifests
from nsc.contract.manifest import digest
from nsc.join.budget import budget_of
from nsc.runtime.relaxed.kernel import Kernel
from nsc.runtime.relaxed.library import Library

pytestmark = pytest.mark.slow("every field of packages is edited")

MORE = pytest.mark.nightly("every field of more packages is edited")
EDITS = Path(__file__).parent / "edit_manifests.py"


@pytest.mark.parametrize(
    ("request_", "served_by"),
    [
        (Request("bitonic", 4, targets=("cpu", "cuda")), "library"),
        pytest.param(Request("bitonic", 4, targets=("cpu", "cuda")), "engine", marks=MORE),
        (Request("bitonic", 6, select=top_k(2)), "engine"),
    ],
)
def test_no_edit_of_a_manifest_makes_a_call_go_wrong(request_, served_by, tmp_path):
    """Edits change a fact, its type, or leave it out; some change a whole package without contradiction."""
    folder = write(compile_network(request_).package, tmp_path)
    command = [sys.executable, EDITS, folder, served_by]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) > 200
    assert [line for line in lines if not line.startswith(("refused", "right"))] == []
    # Facts that no call depends on may be edited.
    right = {line.split(" -- ")[1].split(":")[0] for line in lines if line.startswith("right")}
    assert right <= {"command", "selection", "outputs", "art_lambda", "targets", "cuda", "files"}


PACKAGES = {
    "sorter": lambda: compile_network(Request("bitonic", 4, targets=("cpu", "cuda"))).package,
    "selector": lambda: compile_network(Request("bitonic", 6, select=top_k(2))).package,
    "unproved": lambda: (
        compile_network(
            Request("pairwise", 40, unproved=True, name="unproved"), budget_of(time_limit=0)
        ).package
    ),
    "filter": lambda: compile_filter(Window.of((2, 3), 1)).package,
}
JSON = ("manifest.json", "proof.json", "network.json")
# What may be edited, in packages of every kind, and why.
HARMLESS = {
    ("manifest.json", "nsc"): "another version builds anew",
    ("manifest.json", "command"): "it is shown, and nothing depends on it",
}


def write_into(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def refusal(folder, files):
    """Return why a package is not loaded with some other files; None: it is."""
    write_into(folder, files)
    try:
        nsc.load(folder)
    except nsc.PackageError as error:
        return str(error)
    return None


def kinds_of(packages):
    return {json.loads(package().files["manifest.json"])["kind"] for package in packages.values()}


def test_packages_of_every_kind_are_edited_and_have_every_fact_of_it():
    assert kinds_of(PACKAGES) == manifests.KINDS.keys()
    for package in PACKAGES.values():
        facts = json.loads(package().files["manifest.json"])
        of_kind = {field.name for field in dataclasses.fields(manifests.KINDS[facts["kind"]])}
        assert facts.keys() == of_kind | {"format", "abi", "kind"}


@pytest.mark.parametrize("kind", PACKAGES)
def test_every_fact_of_a_package_of_every_kind_is_checked_when_it_is_loaded(kind, tmp_path):
    """Digests of edited files are made anew, so that only the meaning differs."""
    files = dict(PACKAGES[kind]().files)
    assert refusal(tmp_path, files) is None
    accepted = []
    for file in JSON:
        facts = json.loads(files[file])
        if "command" in facts:  # refusals are worded as in Python
            facts["command"] = "by hand"
        for key in facts.keys() - {"files"}:
            less = {name: value for name, value in facts.items() if name != key}
            values = [*changed(facts[key]), *(manifests.KINDS if key == "kind" else ())]
            for edit in (less, *({**facts, key: value} for value in values)):
                text = json.dumps(edit)
                if text == json.dumps(facts):
                    continue
                texts = {name: files[name] for name in JSON} | {file: text}
                if file != "manifest.json":
                    manifest = json.loads(files["manifest.json"])
                    manifest["files"][file] = digest(text)
                    texts["manifest.json"] = json.dumps(manifest)
                message = refusal(tmp_path, texts)
                if message is None:
                    accepted.append((file, key))
                else:
                    assert "\n" not in message
    assert set(accepted) <= HARMLESS.keys()


@pytest.mark.parametrize("kind", PACKAGES)
@pytest.mark.parametrize("verdict", ["refuted", "proved", "unproved", "", None])
def test_a_verdict_edited_in_the_proof_and_in_the_manifest_is_refused(kind, verdict, tmp_path):
    files = dict(PACKAGES[kind]().files)
    manifest, proof = (json.loads(files[name]) for name in ("manifest.json", "proof.json"))
    if proof["verdict"] == verdict:
        return
    files["proof.json"] = json.dumps(proof | {"verdict": verdict})
    manifest["files"]["proof.json"] = digest(files["proof.json"])
    manifest["proof"] = verdict
    files["manifest.json"] = json.dumps(manifest)
    assert refusal(tmp_path, files) is not None


def test_a_package_of_another_kind_is_refused():
    relaxed, filter_ = (PACKAGES[kind]().files for kind in ("sorter", "filter"))
    with pytest.raises(nsc.PackageError, match=r"'rank_1_2x3' is .*'filter', not 'relaxed': use nsc\.load"):
        nsc.Sorter(filter_)
    with pytest.raises(nsc.PackageError, match=r"'bitonic_4' is .*'relaxed', not 'filter': use nsc\.load"):
        nsc.Filter(relaxed)


def test_an_edited_number_of_wires_is_named():
    files = dict(nsc.compile("bitonic", 4).kernel.files)
    files["manifest.json"] = files["manifest.json"].replace('"n": 4', '"n": 2')
    with pytest.raises(
        nsc.PackageError, match=r"'n' is 2, and bitonic_4\.cpp has 4: compile the package again"
    ):
        Kernel(files)


def test_a_library_of_another_package_is_refused():
    other, kernel = nsc.compile("bitonic", 4).kernel, nsc.compile("bitonic", 6).kernel
    with pytest.raises(nsc.PackageError, match=r"'bitonic_6' .*'n' is 6, and .*bitonic_4.* has 4"):
        Library(other.build().binary, kernel.manifest.stated("cpu"), kernel.reals)


def test_a_library_may_be_prepared_again_and_by_many_threads():
    operator = nsc.compile("bitonic", 6)
    x = torch.randn(3, 6)
    expected = operator.sort_with_permutation(x), operator.hard_sort(x)
    library = ctypes.CDLL(str(operator.kernel.build().binary))
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(library.nsc_prepare())) for _ in range(4)]
    for thread in threads:
        thread.start()
    actual = operator.sort_with_permutation(x), operator.hard_sort(x)
    for thread in threads:
        thread.join()
    assert statuses == [0] * 4
    for first, second in zip(expected, actual, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(operator.sort_with_permutation(x)[1], expected[0][1])

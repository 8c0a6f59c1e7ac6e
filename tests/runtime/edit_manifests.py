"""`python edit_manifests.py FOLDER engine | library`: edit a package's manifest, and call its operator.

There are many edits. Prints a line per edit: "refused", "right", or the fault. It needs a process of its own,
because a call that reads beyond its memory would end the process.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import nsc


def changed(value: Any) -> list[Any]:
    """Return values that are near to a value, far from it, or of another type."""
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int | float):
        return [
            0,
            -1,
            value - 1,
            value + 1,
            2 * value,
            1 << 40,
            float(value),
            str(value),
            True,
            None,
            [value],
        ]
    if isinstance(value, str):
        return ["", f"{value}x", "float64", "../x", None, 1, [value]]
    return [None, 1, "x", [] if isinstance(value, dict) else {}]


def edits(value: Any) -> Iterator[Any]:
    """Yield a JSON value with one part changed, left out or repeated, in every way."""
    yield from changed(value)
    if isinstance(value, dict):
        for key, part in value.items():
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, key: edit} for edit in edits(part))
        yield {**value, "float64": ["float64"]}
    if isinstance(value, list):
        yield from (value[:-1], value[::-1], [*value, *value[:1]])
        for index, part in enumerate(value):
            yield from ([*value[:index], edit, *value[index + 1 :]] for edit in edits(part))


def manifests(
    manifest: dict[str, Any], files: dict[str, str]
) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Yield the name of an edit, the edited manifest, and the files beside it."""
    for key, value in manifest.items():
        # Not the version of nsc: another version needs another build, which takes long.
        for edit in edits(value) if key != "nsc" else ():
            yield f"{key}: {json.dumps(edit)[:60]}", manifest | {key: edit}, files
        yield f"no {key}", {k: v for k, v in manifest.items() if k != key}, files
    yield "another fact", manifest | {"wires": manifest["n"]}, files
    # A network of another number of wires, with its digest.
    for n in (2, 64):
        layers = json.dumps({"format": "nsc-network/1", "n": n, "layers": [[[0, 1]]]})
        digests = {**manifest["files"], "network.json": hashlib.sha256(layers.encode()).hexdigest()}
        facts = {"n": n, "size": 1, "depth": 1, "outputs": None, "files": digests}
        yield f"network of {n}", manifest | facts, files | {"network.json": layers}
        yield f"network of {n} alone", manifest | {"files": digests}, files | {"network.json": layers}
    # A source with a comment that states fewer wires, with its digest: the kernel states the right number.
    source = f"{manifest['name']}.cpp"
    (statement,) = re.findall(r'nsc_facts.*?"n.*', files[source])
    n = manifest["n"]
    text = "// " + statement.replace(f'\\"n\\": {n}', f'\\"n\\": {n - 1}') + "\n" + files[source]
    digests = {**manifest["files"], source: hashlib.sha256(text.encode()).hexdigest()}
    facts = {"n": n - 1, "files": digests, "targets": ["cpu"], "cuda": {}}
    yield "a source that remarks on itself", manifest | facts, files | {source: text}


def results(folder: Path, n: int, by_engine: bool) -> list[torch.Tensor]:
    """Return the results of calls of a package, which the engine runs or its own library."""
    x = torch.linspace(-1, 1, 5 * n).sin().reshape(5, n)
    operator = nsc.load(folder)
    if by_engine:
        operator.kernel._library = operator.kernel.engine()
    if isinstance(operator, nsc.Selector):
        return [*operator.select_with_rows(x, 3.0), *operator.hard_select(x), operator.select(x)]
    ranks = x.argsort(-1).argsort(-1)
    x = x.requires_grad_()
    loss = operator.cross_entropy(x, ranks)
    loss.backward()
    return [*operator.sort_with_permutation(x, 3.0), *operator.hard_sort(x), loss, x.grad]


def main(folder: Path, by_engine: bool) -> None:
    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    files = {name: (folder / name).read_text() for name in manifest["files"]}
    expected = results(folder, manifest["n"], by_engine)
    for name, edit, beside in manifests(manifest, files):
        for file, content in {**beside, "manifest.json": json.dumps(edit)}.items():
            (folder / file).write_text(content)
        try:
            n = edit.get("n")
            n = n if type(n) is int and 0 < n < 100 else manifest["n"]
            actual = results(folder, n, by_engine)
            same = all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))
            outcome = "right" if same else "WRONG"
        except nsc.PackageError:
            outcome = "refused"
        except nsc.OperandError as error:
            outcome = "refused" if "this op is compiled for cuda" in str(error) else str(error)
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(f"{outcome} -- {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "engine")

"""`python edit_manifests.py FOLDER`: what calls of a package do once its manifest says something else.

Prints a line an edit: "refused", "right", or what came out. A process of its own, because a call that took
its memory for what it is not would end it.
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
    """Values that are near to one, far from it, or of another type."""
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
    """Every way to change, leave out or repeat one part of a JSON value."""
    yield from changed(value)
    if isinstance(value, dict):
        for key, part in value.items():
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, key: edit} for edit in edits(part))
        yield {**value, "float64": ["float64"]}
    if isinstance(value, list):
        yield from (value[:-1], value[::-1], [*value, *value[:1]])
        for place, part in enumerate(value):
            yield from ([*value[:place], edit, *value[place + 1 :]] for edit in edits(part))


def manifests(
    manifest: dict[str, Any], files: dict[str, str]
) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Edits by name: the manifest and the files beside it."""
    for key, value in manifest.items():
        # Another version of nsc is another build, which takes long.
        for edit in edits(value) if key != "nsc" else ():
            yield f"{key}: {json.dumps(edit)[:60]}", manifest | {key: edit}, files
        yield f"no {key}", {k: v for k, v in manifest.items() if k != key}, files
    # A whole network of other wires, signed.
    for n in (2, 64):
        layers = json.dumps({"format": "nsc-network/1", "n": n, "layers": [[[0, 1]]]})
        signed = {**manifest["files"], "network.json": hashlib.sha256(layers.encode()).hexdigest()}
        facts = {"n": n, "size": 1, "depth": 1, "outputs": None, "files": signed}
        yield f"network of {n}", manifest | facts, files | {"network.json": layers}
        yield f"network of {n} alone", manifest | {"files": signed}, files | {"network.json": layers}
    # A source with a remark that it is of fewer wires, signed: what is built from it knows better.
    source = manifest["sources"]["cpu"]
    (stated,) = re.findall(r'nsc_facts.*?"n.*', files[source])
    n = manifest["n"]
    text = "// " + stated.replace(f'\\"n\\": {n}', f'\\"n\\": {n - 1}') + "\n" + files[source]
    signed = {**manifest["files"], source: hashlib.sha256(text.encode()).hexdigest()}
    facts = {"n": n - 1, "files": signed, "sources": {"cpu": source}, "cuda": {}}
    yield "a source that remarks on itself", manifest | facts, files | {source: text}


def results(folder: Path, n: int) -> list[torch.Tensor]:
    """What calls of a package give."""
    x = torch.linspace(-1, 1, 5 * n).sin().reshape(5, n)
    operator = nsc.load(folder)
    if isinstance(operator, nsc.Selector):
        return [*operator.select_with_rows(x, 3.0), *operator.hard_select(x), operator.select(x)]
    ranks = x.argsort(-1).argsort(-1)
    x = x.requires_grad_()
    loss = operator.cross_entropy(x, ranks)
    loss.backward()
    return [*operator.sort_with_permutation(x, 3.0), *operator.hard_sort(x), loss, x.grad]


def main(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    files = {name: (folder / name).read_text() for name in manifest["files"]}
    wanted = results(folder, manifest["n"])
    for name, edit, beside in manifests(manifest, files):
        for file, content in {**beside, "manifest.json": json.dumps(edit)}.items():
            (folder / file).write_text(content)
        try:
            n = edit.get("n")
            given = results(folder, n if type(n) is int and 0 < n < 100 else manifest["n"])
            same = all(torch.equal(a, b) for a, b in zip(given, wanted, strict=True))
            outcome = "right" if same else "WRONG"
        except nsc.PackageError:
            outcome = "refused"
        except nsc.OperandError as error:
            outcome = "refused" if "this op is compiled for cuda" in str(error) else str(error)
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(f"{outcome} -- {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

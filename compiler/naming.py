"""Naming: what a package is called, and what its texts say of its purpose and origin."""

from __future__ import annotations

import keyword
import os
import re
from dataclasses import dataclass
from pathlib import Path

from nsc.compiler.describe import is_family
from nsc.compiler.families import is_known_name
from nsc.compiler.network import Network
from nsc.compiler.package import LONGEST_NAME, check_name
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.compiler.verify import Proof, Verdict
from nsc.wording import count


@dataclass(frozen=True)
class Head:
    """The first lines of a generated text: its purpose and its origin.

    Attributes:
        name: of the package.
        purpose: such as "sorting of 16 values".
        command: what makes the package again.
        version: of nsc.
        proof: what is proved, and by which method.
        network: what was compiled.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    network: Network


def package_name(request: Request, n: int) -> str:
    """Return the package's name: the one that the request states, else the default for n wires."""
    return request.name or default_name(request, n)


def default_name(request: Request, n: int) -> str:
    """Return the family's name or the file's stem, as an identifier, with n and the options not at default.

    Packages that compute different values therefore have different names. Targets are not part of a name.
    """
    if request.window is not None and request.select is not None:
        return f"{request.select.label}_{_size(request.window)}"
    options = _options_label(request)
    stem = Path(request.network).stem if isinstance(request.network, str | os.PathLike) else "network"
    longest = LONGEST_NAME - len(f"network__{n}{options}")
    word = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_")[:longest] or "network"
    if word[0].isdigit() or keyword.iskeyword(word):
        word = f"network_{word}"
    word = word if word.endswith(f"_{n}") or is_known_name(word) else f"{word}_{n}"
    return f"{word}{options}"


def _options_label(request: Request) -> str:
    """Return the options of a request that are not at their default, each with _ in front."""
    default, relaxation, words = Relaxation(), request.relaxation, [""]
    if request.select is not None:
        words.append(request.select.label)
    if request.off_by:
        words.append(f"off_by_{request.off_by}")
    if request.remove_redundant:
        words.append("remove_redundant")
    if relaxation.sigmoid != default.sigmoid:
        words.append(relaxation.sigmoid)
    if relaxation.art_lambda != default.art_lambda:
        words.append(f"art_{re.sub(r'[^0-9e]', '_', repr(relaxation.art_lambda).removesuffix('.0'))}")
    if relaxation.error_free:
        words.append("error_free")
    if request.dtypes != ("float32",) and request.language is None:  # a header names functions by types
        words += request.dtypes
    return "_".join(words)


def command(request: Request, name: str) -> str:
    """Return a command that makes the package again.

    A user's network is named by the copy inside the package, network.json, so that no path and no file name
    of the machine reaches the generated text.
    """
    family = request.network if is_family(request.network) else None
    kind = "compile" if request.language is None else f"emit {request.language}"
    words = [f"nsc {kind}", f"{family} --n {request.n}" if family else "network.json"]
    if request.window is not None:
        words[1] = _size(request.window)
    if request.name is not None or not family:
        words.append(f"--name {name}")
    default, relaxation = Relaxation(), request.relaxation
    if relaxation.sigmoid != default.sigmoid:
        words.append(f"--relaxation {relaxation.sigmoid}")
    if relaxation.art_lambda != default.art_lambda:
        words.append(f"--art-lambda {relaxation.art_lambda!r}")
    if relaxation.error_free:
        words.append("--error-free")
    if request.dtypes != ("float32",):
        words.append(f"--dtype {','.join(request.dtypes)}")
    if request.targets != ("cpu",) and request.language is None:
        words.append(f"--target {','.join(request.targets)}")
    if request.select is not None:
        words.append(request.select.option)
    if request.off_by:
        words.append(f"--off-by {request.off_by}")
    if request.wires is not None:
        words.append(f"--wires {','.join(map(str, request.wires))}")
    if request.remove_redundant:
        words.append("--remove-redundant")
    if request.unproved:
        words.append("--unproved")
    if request.single_file:
        words.append("--single-file")
    return " ".join(words)


def proof_line(proof: Proof) -> str:
    """Return what a package's texts say of its proof, in one line."""
    if proof.verdict is Verdict.PROVED:
        comma = "," if proof.property.endswith("off") else ""
        claim = "sorts every input" if proof.property == "sort" else f"{proof.property}{comma} of every input"
        return f"{claim}, by {proof.method}: {proof.detail}"
    return f"UNPROVED: {proof.detail}"


def purpose(request: Request, n: int) -> str:
    """Return what a package is for, such as "selection of the median of 5 values"."""
    task = "sorting" if request.select is None else f"selection of {request.select.words}"
    task += f", at most {count(request.off_by, 'rank')} off," if request.off_by else ""
    return f"{task} of {count(n, 'value') if request.window is None else f'{_size(request.window)} pixels'}"


def _size(window: tuple[int, int]) -> str:
    return "x".join(map(str, window))


def head_of(request: Request, network: Network, proof: Proof) -> Head:
    """Return what the texts of a compiled network say of their purpose and origin.

    Raises:
        LoweringError: the name of a file is no identifier.
    """
    name = package_name(request, network.n)
    check_name(name)
    made_by = command(request, name)
    return Head(name, purpose(request, network.n), made_by, request.version, proof_line(proof), network)

"""Naming: what a package is called, and what its texts say of its purpose and origin."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from nsc.compiler.describe import is_family
from nsc.compiler.package import LONGEST_NAME
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.compiler.verify import Proof, Verdict
from nsc.wording import count


def package_name(request: Request, n: int) -> str:
    """Return the name of a request's package: the one it states, or that of its network on n wires."""
    return request.name or default_name(request, n)


def default_name(request: Request, n: int) -> str:
    """Return a package's name: the family or the file's stem, made an identifier, n, and what is not default.

    Two packages that compute different values so have different names; one for more targets has the same.
    """
    what = _not_default(request)
    stem = Path(request.network).stem if isinstance(request.network, str | os.PathLike) else "network"
    longest = LONGEST_NAME - len(f"network__{n}{what}")
    word = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_")[:longest] or "network"
    if word[0].isdigit() or keyword.iskeyword(word):
        word = f"network_{word}"
    word = word if word.endswith(f"_{n}") else f"{word}_{n}"
    return f"{word}{what}"


def _not_default(request: Request) -> str:
    """Return what a request asks for beyond the defaults, each with _ in front."""
    default, relaxation, words = Relaxation(), request.relaxation, [""]
    if request.select is not None:
        what = re.sub(r"\W", "_", request.select)
        words.append(what if len(what) <= 12 else f"{1 + request.select.count(',')}_ranks")
    if request.without_redundant:
        words.append("without_redundant")
    if relaxation.sigmoid != default.sigmoid:
        words.append(relaxation.sigmoid)
    if relaxation.art_lambda != default.art_lambda:
        words.append(f"art_{re.sub(r'[^0-9e]', '_', repr(relaxation.art_lambda).removesuffix('.0'))}")
    if relaxation.error_free:
        words.append("error_free")
    if request.dtypes != ("float32",):
        words += request.dtypes
    return "_".join(words)


def command(request: Request, name: str) -> str:
    """Return a command that makes the package again.

    Of a user's network only the copy inside the package is named: neither a path of the machine nor
    a file's name reaches the generated text.
    """
    family = request.network if is_family(request.network) else None
    words = ["nsc compile", f"--net {family} --n {request.n}" if family else "--net network.json"]
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
        words += [f"--dtype {dtype}" for dtype in request.dtypes]
    if request.targets != ("cpu",):
        words.append(f"--target {','.join(request.targets)}")
    if request.select is not None:
        kind, _, values = request.select.partition("-")
        words.append({"top": f"--top-k {values}", "rank": f"--ranks {values}"}.get(kind, "--median"))
    if request.wires is not None:
        words.append(f"--wires {','.join(map(str, request.wires))}")
    if request.without_redundant:
        words.append("--remove-redundant")
    if request.unproved:
        words.append("--unproved")
    return " ".join(words)


def proof_line(proof: Proof) -> str:
    if proof.verdict is Verdict.PROVED:
        what = "sorts every input" if proof.property == "sort" else f"{proof.property} of every input"
        return f"{what}, by {proof.method}: {proof.detail}"
    return f"UNPROVED: {proof.detail}"


def purpose(request: Request, n: int) -> str:
    if request.select is None:
        return f"sorting of {count(n, 'value')}"
    kind, _, detail = request.select.partition("-")
    many = detail.count(",")
    what = {"top": "the largest" if detail == "1" else f"the {detail} largest", "median": "the median"}.get(
        kind, f"{1 + many} ranks" if many else f"rank {detail}"
    )
    return f"selection of {what} of {count(n, 'value')}"

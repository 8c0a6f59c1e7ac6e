"""The manifest of a package, which the compiler writes and the runtime reads: what it is, and its files.

A kernel states the facts that its calls depend on too (`Manifest.stated`): in its source, and in its binary.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from nsc.contract.interface import KERNEL_ABI, REALS
from nsc.contract.launch import Launch
from nsc.contract.targets import TARGETS
from nsc.errors import PackageError
from nsc.strict_json import read_json

PACKAGE_FORMAT = "nsc-package/1"
# Files that every package has.
MANIFEST = "manifest.json"
NETWORK = "network.json"
PROOF = "proof.json"
# Those of which kernels state the SHA-256.
STATED_FILES = (NETWORK, PROOF)

_AGAIN = "compile the package again"


@dataclass(frozen=True)
class Manifest:
    """What a package is.

    Attributes:
        name: a Python identifier, the name of the package and of its operator.
        nsc: the version of nsc that wrote it.
        command: a command that makes the package again.
        n: number of wires.
        size: number of comparators.
        depth: number of layers.
        outputs: of a network that selects, each selected wire and its rank, 0 the smallest, in the order of
            the results. None: the network sorts, wire w carries rank w.
        network: the digest of the network.
        proof: the verdict of its proof.
        sigmoid: the name of the relaxation's sigmoid.
        art_lambda: the strength of the activation replacement trick.
        error_free: whether forward results are exact.
        reals: the arithmetic types that its kernels are compiled for, keys of REALS.
        targets: what its kernels are compiled for, keys of TARGETS.
        cuda: the launch parameters of the CUDA kernels; None where there are none.
        files: the package's other files, name to SHA-256.

    Raises:
        PackageError: when built, for a fact of another type, outside its range, or at odds with another.
    """

    name: str
    nsc: str
    command: str
    n: int
    size: int
    depth: int
    outputs: tuple[tuple[int, int], ...] | None
    network: str
    proof: str
    sigmoid: str
    art_lambda: float
    error_free: bool
    reals: tuple[str, ...]
    targets: tuple[str, ...]
    cuda: Launch | None
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("name", "nsc", "command", "network", "proof", "sigmoid"):
            self._check(name, isinstance(getattr(self, name), str))
        self._check("name", self.name.isidentifier())
        for name, least in (("n", 1), ("size", 0), ("depth", 0)):
            self._check(name, _is_whole(getattr(self, name), least))
        self._check("outputs", self.outputs is None or _are_outputs(self.outputs, self.n))
        self._check("art_lambda", type(self.art_lambda) in (int, float) and 0 <= self.art_lambda < 1)
        self._check("error_free", type(self.error_free) is bool)
        self._check("reals", _are_some_of(self.reals, REALS))
        self._check("targets", _are_some_of(self.targets, TARGETS))
        is_launched = "cuda" in self.targets
        self._check("cuda", isinstance(self.cuda, Launch) if is_launched else self.cuda is None)
        self._check("files", isinstance(self.files, Mapping) and are_texts(self.files))
        if not all(map(is_inside, self.files)):
            raise PackageError(f"the manifest lists a file outside the folder: {_AGAIN}")
        self._check_lists(STATED_FILES)
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    @property
    def sources(self) -> dict[str, str]:
        """The file of each target's source."""
        return {target: f"{self.name}{TARGETS[target].suffix}" for target in self.targets}

    def stated(self, target: str) -> str:
        """Return what a target's kernel states of itself, as JSON: the facts that its calls depend on."""
        facts = self._facts()
        stated = {key: facts[key] for key in _STATED} | {name: self.files[name] for name in STATED_FILES}
        return json.dumps(stated | {"cuda": facts["cuda"]} if target == "cuda" else stated)

    def with_files(self, texts: Mapping[str, str]) -> Manifest:
        """Return the manifest of a package of these texts.

        Raises:
            PackageError: a target's source is not among them, or the network or the proof is another one.
        """
        manifest = replace(self, files={name: digest(text) for name, text in texts.items()})
        manifest._check_lists([*self.sources.values(), *STATED_FILES])
        for name in STATED_FILES:
            manifest._check("files", manifest.files[name] == self.files[name])
        return manifest

    def check_files(self, texts: Mapping[str, str]) -> None:
        """Raise PackageError unless the package's files are those that nsc wrote, and say what it says."""
        check_texts(self.name, self.files, texts)
        check_proof(self.name, texts[PROOF], self.proof)
        for target, file in self.sources.items():
            check_stated(self.stated(target), stated_in(texts[file]), file)

    def to_text(self) -> str:
        """Return the manifest as it is written, JSON."""
        return json.dumps({"format": PACKAGE_FORMAT, **self._facts()}, indent=1) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Manifest:
        """Return the manifest that a text holds.

        Raises:
            PackageError: no manifest, one of another version, or one with a wrong fact, which is named.
        """
        try:
            facts = read_json(text)
            format_, abi, name = facts["format"], facts.get("abi"), facts.get("name")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PackageError(f"no readable manifest ({error}): {_AGAIN}") from None
        if format_ != PACKAGE_FORMAT or type(abi) is not int or abi != KERNEL_ABI:
            raise PackageError(
                f"package {name!r} has format {format_!r} and kernel interface {abi!r}, this nsc reads "
                f"{PACKAGE_FORMAT!r} and {KERNEL_ABI}: compile it again"
            )
        values = {}
        for field in fields(cls):
            key, read = _READERS.get(field.name, (field.name, _unchanged))
            if key not in facts:
                raise _wrong(key, None)
            values[field.name] = read(facts[key])
        manifest = cls(**values)
        manifest._check_lists([*manifest.sources.values(), PROOF])
        written = manifest._facts()
        for key in facts.keys() - written.keys() - {"format"}:
            raise PackageError(f"the manifest has {key!r}, which nsc does not write: {_AGAIN}")
        for key, value in written.items():
            # As text: 4, 4.0 and True are equal in Python.
            if json.dumps(value) != json.dumps(facts[key]):
                raise _wrong(key, facts[key])
        return manifest

    def _facts(self) -> dict[str, Any]:
        """Return the facts as JSON has them, in their order in the manifest."""
        return {
            "name": self.name,
            "nsc": self.nsc,
            "command": self.command,
            "n": self.n,
            "size": self.size,
            "depth": self.depth,
            "outputs": None if self.outputs is None else [list(output) for output in self.outputs],
            "network": self.network,
            "proof": self.proof,
            "sigmoid": self.sigmoid,
            "art_lambda": self.art_lambda,
            "error_free": self.error_free,
            "reals": {real: list(REALS[real].serves) for real in self.reals},
            "abi": KERNEL_ABI,
            "sources": self.sources,
            "cuda": {} if self.cuda is None else asdict(self.cuda),
            "files": dict(self.files),
        }

    def _check(self, name: str, is_right: bool) -> None:
        if not is_right:
            raise _wrong(name, getattr(self, name))

    def _check_lists(self, needed: Iterable[str]) -> None:
        """Raise PackageError unless the manifest lists some files."""
        missing = [file for file in needed if file not in self.files]
        if missing:
            raise PackageError(f"{self.name}: the manifest does not list {missing}: {_AGAIN}")


# What a kernel states of itself, beside the SHA-256 of STATED_FILES and its launch parameters.
_STATED = (
    "abi",
    "name",
    "n",
    "size",
    "depth",
    "outputs",
    "sigmoid",
    "art_lambda",
    "error_free",
    "reals",
    "network",
    "proof",
)
# Where a kernel's source states it: the string that nsc_facts, or nsc_window_facts, holds or returns.
_STATEMENT = re.compile(r'\bnsc_(?:window_)?facts\b[^"\n]*("(?:[^"\\\n]|\\.)*")')
# The verdicts of proofs that packages have.
_ACCEPTED = ("proved", "unproved")


def digest(text: str) -> str:
    """Return the SHA-256 of a file's text, as manifests have it."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_texts(name: str, files: Mapping[str, str], texts: Mapping[str, str]) -> None:
    """Raise PackageError unless a package's files have the SHA-256 that its manifest lists.

    Args:
        name: of the package, for messages.
        files: name to SHA-256.
        texts: name to text.
    """
    for file, wanted in files.items():
        if file not in texts or digest(texts[file]) != wanted:
            raise PackageError(
                f"{name}: {file} was changed or is missing since nsc wrote it: {_AGAIN} (an edited source is "
                "not covered by its proof)"
            )


class Listing(Protocol):
    """A manifest of any kind: it lists the package's other files."""

    @property
    def files(self) -> Mapping[str, str]:
        """Name to SHA-256."""

    @classmethod
    def from_text(cls, text: str) -> Listing:
        """Return the manifest that a text holds, or raise PackageError."""


def read_files(folder: Path, kind: type[Listing], word: str) -> dict[str, str]:
    """Return the texts of a folder that nsc wrote, its manifest among them.

    Args:
        folder: the folder.
        kind: of manifest.
        word: what a package of this kind is called.

    Raises:
        PackageError: no such folder, or one that nsc did not write.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        files = {name: (folder / name).read_text(encoding="utf-8") for name in kind.from_text(text).files}
    except PackageError as error:
        raise PackageError(f"{folder} is no {word} that this nsc reads: {error}") from None
    except (OSError, ValueError) as error:
        raise PackageError(
            f"{folder} is no {word} that nsc compile wrote ({error}): compile it again"
        ) from None
    return files | {MANIFEST: text}


def check_proof(name: str, text: str, verdict: str) -> None:
    """Raise PackageError unless a package's proof has a verdict with which kernels are made.

    Args:
        name: of the package, for messages.
        text: of the proof.
        verdict: what the manifest says.
    """
    proof = _parsed(text)
    found = proof.get("verdict") if isinstance(proof, dict) else None
    if found != verdict or verdict not in _ACCEPTED:
        raise PackageError(
            f"{name}: {PROOF} says {found!r}, the manifest says {verdict!r}, and kernels are "
            f"{' or '.join(_ACCEPTED)}: {_AGAIN}"
        )


def stated_in(source: str) -> object:
    """Return what a source states of its kernel, JSON; None where it states nothing."""
    literal = _STATEMENT.search(source)
    return None if literal is None else _parsed(literal[1])


def check_stated(wanted: str, stated: object, where: str) -> None:
    """Raise PackageError unless a kernel states of itself what the manifest says.

    Args:
        wanted: what the manifest says, of `Manifest.stated`.
        stated: what the kernel says; None: nothing.
        where: the file that it is in.
    """
    if wanted == stated:
        return
    manifest, kernel = json.loads(wanted), _parsed(stated)
    if not isinstance(kernel, dict):
        raise PackageError(f"{where} does not state what kernel it is: {_AGAIN}")
    differing = [key for key in manifest if json.dumps(manifest[key]) != json.dumps(kernel.get(key))]
    both = "; ".join(
        f"{key!r} is {manifest[key]!r}, and {where} has {kernel.get(key)!r}" for key in differing
    )
    raise PackageError(f"in the manifest of {manifest['name']!r} {both}: {_AGAIN}")


def _parsed(text: object) -> object:
    """Return the value of a JSON text, None where it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _wrong(name: str, value: object) -> PackageError:
    return PackageError(f"the manifest's {name!r} is {value!r}: {_AGAIN}")


def _is_whole(value: object, least: int, end: float = float("inf")) -> bool:
    return type(value) is int and least <= value < end


def _are_outputs(outputs: object, n: int) -> bool:
    """Whether something is pairs of a wire and a rank, no wire twice and no rank twice."""
    if not isinstance(outputs, tuple) or not outputs:
        return False
    for output in outputs:
        if not (isinstance(output, tuple) and len(output) == 2 and all(_is_whole(x, 0, n) for x in output)):
            return False
    wires, ranks = zip(*outputs, strict=True)
    return len(set(wires)) == len(wires) and len(set(ranks)) == len(ranks)


def _are_some_of(names: object, table: Mapping[str, object]) -> bool:
    return (
        isinstance(names, tuple)
        and len(names) > 0
        and all(isinstance(name, str) and name in table for name in names)
        and len(set(names)) == len(names)
    )


def are_texts(files: Mapping[Any, Any]) -> bool:
    return all(isinstance(text, str) for entry in files.items() for text in entry)


def is_inside(name: str) -> bool:
    """Whether a file's name leads nowhere but into the package's folder."""
    return name not in ("", ".", "..") and not {"/", "\\", "\0"} & set(name)


def _unchanged(value: Any) -> Any:
    return value


def _read_outputs(value: Any) -> Any:
    is_pairs = isinstance(value, list) and all(isinstance(item, list) for item in value)
    return tuple(map(tuple, value)) if is_pairs else value


def _read_reals(value: Any) -> Any:
    return tuple(value) if isinstance(value, dict) else value


def _read_targets(sources: object) -> tuple[str, ...]:
    if not isinstance(sources, dict):
        raise _wrong("sources", sources)
    targets = tuple(sources)
    if not _are_some_of(targets, TARGETS):
        raise PackageError(
            f"the manifest's 'sources' are for {', '.join(map(repr, targets)) or 'nothing'}, kernels are for "
            f"{' and '.join(TARGETS)}: {_AGAIN}"
        )
    return targets


def _read_launch(value: Any) -> Launch | None:
    if value == {}:
        return None
    try:
        return Launch(**value)
    except (TypeError, ValueError):
        raise _wrong("cuda", value) from None


# Of what JSON has otherwise than a manifest: its key there, and how it is read.
_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "outputs": ("outputs", _read_outputs),
    "reals": ("reals", _read_reals),
    "targets": ("sources", _read_targets),
    "cuda": ("cuda", _read_launch),
}

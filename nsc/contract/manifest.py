"""The manifest of a package: facts about it and its files. The compiler writes it, the runtime reads it.

A package has a kind, a key of KINDS. The class of a kind lists the facts that its manifests have. Each source
also states the facts that calls depend on (`Manifest.stated`). A manifest passes as written by nsc if:

- it reads back as it was written;
- its files have their digests;
- its sources state its facts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from nsc import library
from nsc.contract.interface import KERNEL_ABI, REALS
from nsc.contract.launch import Launch
from nsc.contract.targets import TARGETS
from nsc.errors import PackageError
from nsc.strict_json import read_json
from nsc.version import VERSION

PACKAGE_FORMAT = "nsc-package/2"
# Files that every package has.
MANIFEST = "manifest.json"
NETWORK = "network.json"
PROOF = "proof.json"
# A file that packages of relaxed networks for processors have besides.
TABLES = "tables.json"

_AGAIN = "compile the package again"
# Facts that no source states: no call depends on the first three, and `files` has the sources' own digests.
_UNSTATED = ("format", "nsc", "command", "files")
# Where a source states its facts: the string that nsc_facts holds or returns.
_STATEMENT = re.compile(r'\bnsc_facts\b[^"\n]*("(?:[^"\\\n]|\\.)*")')
# Errors that a manifest may raise if nsc did not write it.
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)

AnyManifest = TypeVar("AnyManifest", bound="Manifest")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The facts that the manifests of all kinds have.

    Attributes:
        kind: of package, a key of KINDS.
        name: a Python identifier, the name of the package and of the object that it is loaded as.
        nsc: the version of nsc that wrote it.
        library: the digest of the kernel library that its kernels were written for.
        command: a command that makes the package again.
        network: the digest of the network.
        proof: the verdict of its proof.
        targets: the targets that its kernels are compiled for, keys of TARGETS.
        files: the package's other files, name to SHA-256.
    """

    kind: ClassVar[str]

    name: str
    nsc: str
    library: str
    command: str
    network: str
    proof: str
    targets: tuple[str, ...]
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    @property
    def sources(self) -> dict[str, str]:
        """The file of each target's source."""
        return {target: f"{self.name}{TARGETS[target].suffix}" for target in self.targets}

    def stated(self) -> str:
        """Return the facts that each source states about the package, as JSON.

        These are the facts that calls depend on, with the digests of the files that define the computation.
        """
        facts = {key: value for key, value in self._written().items() if key not in _UNSTATED}
        run = {NETWORK, PROOF, TABLES, *map(engine_source, REALS)}
        return json.dumps(facts | {name: digest for name, digest in self.files.items() if name in run})

    def with_files(self: AnyManifest, texts: Mapping[str, str]) -> AnyManifest:
        """Return the manifest of a package of these texts."""
        return replace(self, files={name: digest(text) for name, text in texts.items()})

    def to_text(self) -> str:
        """Return the manifest as it is written, JSON."""
        return json.dumps(self._written(), indent=1) + "\n"

    @classmethod
    def from_text(cls: type[AnyManifest], text: str) -> AnyManifest:
        """Return the manifest that a text holds.

        Raises:
            PackageError: no manifest; a manifest of another version or kind; or a text that nsc would write
                otherwise.
        """
        try:
            facts = read_json(text)
            format_, abi, name, kind = facts["format"], *map(facts.get, ("abi", "name", "kind"))
        except _MALFORMED as error:
            raise PackageError(f"no readable manifest ({error}): {_AGAIN}") from None
        if format_ != PACKAGE_FORMAT or type(abi) is not int or abi != KERNEL_ABI:
            raise PackageError(
                f"package {name!r} has format {format_!r} and kernel interface {abi!r}, this nsc reads "
                f"{PACKAGE_FORMAT!r} and {KERNEL_ABI}: compile it again"
            )
        if facts.get("library") != library.digest():
            raise PackageError(
                f"package {name!r} was written by nsc {facts.get('nsc')!r} for another kernel library than "
                f"this nsc {VERSION} has: compile it again"
            )
        found = KINDS.get(kind) if isinstance(kind, str) else None
        if found is None:
            raise PackageError(f"the manifest's 'kind' is {kind!r}, not one of {', '.join(KINDS)}: {_AGAIN}")
        if not issubclass(found, cls):
            raise PackageError(f"package {name!r} is of the kind {kind!r}, not {cls.kind!r}: use nsc.load")
        try:
            manifest = found(**found._read(facts))
            sources, written = manifest.sources.values(), manifest._written()
        except _MALFORMED as error:
            raise PackageError(f"no readable manifest of {name!r} ({error!r}): {_AGAIN}") from None
        _check_same(name, facts, written, "nsc writes")
        if any("/" in file for file in manifest.files):
            raise PackageError(f"{name}: the manifest lists a file outside the folder: {_AGAIN}")
        missing = [file for file in sources if file not in manifest.files]
        if missing or not sources:
            raise PackageError(f"{name}: the manifest does not list {missing or 'a source'}: {_AGAIN}")
        return manifest

    @classmethod
    def of_files(cls: type[AnyManifest], texts: Mapping[str, str]) -> AnyManifest:
        """Return the manifest of a package's files; check that nsc wrote them and that they agree with it.

        Args:
            texts: name to text, the manifest among them.

        Raises:
            PackageError: as `from_text`; a missing or changed file, or a file that contradicts the manifest.
        """
        manifest = cls.from_text(texts.get(MANIFEST, ""))
        for file, wanted in manifest.files.items():
            if file not in texts or digest(texts[file]) != wanted:
                raise PackageError(
                    f"{manifest.name}: {file} was changed or is missing since nsc wrote it: {_AGAIN} (an "
                    "edited source is not covered by its proof)"
                )
        for file in manifest.sources.values():
            try:
                (literal,) = _STATEMENT.findall(texts[file])
                stated = json.loads(json.loads(literal))
            except _MALFORMED:
                raise PackageError(f"{file} does not state what kernel it is: {_AGAIN}") from None
            _check_same(manifest.name, json.loads(manifest.stated()), stated, f"{file} has")
        return manifest

    @classmethod
    def _read(cls, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes, read from JSON facts."""
        return {each.name: _as_tuples(facts[each.name]) for each in fields(cls)}

    def _written(self) -> dict[str, Any]:
        """Return the facts as JSON has them, in their order in the manifest; the files come last."""
        facts = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "files"}
        head = {"format": PACKAGE_FORMAT, "abi": KERNEL_ABI, "kind": self.kind}
        return {**head, **facts, "files": dict(self.files)}


@dataclass(frozen=True, kw_only=True)
class RelaxedManifest(Manifest):
    """The facts about a package of a relaxed network.

    Attributes:
        n: number of wires.
        size: number of comparators.
        depth: number of layers.
        selection: the kind of selection, a key of `compiler.selection.SELECTIONS`; None: the network sorts.
        outputs: if the network selects, each selected wire and its rank, 0 the smallest, in the order of the
            results. None: the network sorts, wire w carries rank w.
        sigmoid: the name of the relaxation's sigmoid.
        art_lambda: the strength of the activation replacement trick.
        error_free: whether forward results are exact.
        reals: the arithmetic types that its kernels are compiled for, keys of REALS.
        cuda: the launch parameters of the CUDA kernels; None if there are no CUDA kernels.
    """

    kind: ClassVar[str] = "relaxed"

    n: int
    size: int
    depth: int
    selection: str | None
    outputs: tuple[tuple[int, int], ...] | None
    sigmoid: str
    art_lambda: float
    error_free: bool
    reals: tuple[str, ...]
    cuda: Launch | None

    @classmethod
    def _read(cls, facts: Mapping[str, Any]) -> dict[str, Any]:
        launch = Launch(**facts["cuda"]) if facts["cuda"] else None
        return super()._read(facts) | {"reals": tuple(facts["reals"]), "cuda": launch}

    def _written(self) -> dict[str, Any]:
        reals = {real: REALS[real].serves for real in self.reals}
        return super()._written() | {"reals": reals, "cuda": asdict(self.cuda) if self.cuda else {}}


@dataclass(frozen=True, kw_only=True)
class FilterManifest(Manifest):
    """The facts about a package of a filter.

    Attributes:
        window: the window and the selected ranks, as `Window.key`.
        outputs: the wires of the network that carry these ranks.
    """

    kind: ClassVar[str] = "filter"

    window: str
    outputs: tuple[int, ...]


# The kinds of packages.
KINDS: dict[str, type[Manifest]] = {each.kind: each for each in (RelaxedManifest, FilterManifest)}


def engine_source(real: str) -> str:
    """Return the file of a package with the source of the engine for an arithmetic type."""
    return f"engine_{REALS[real].suffix}.cpp"


def digest(text: str) -> str:
    """Return the SHA-256 of a file's text, as manifests have it."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_files(folder: Path) -> dict[str, str]:
    """Return the texts of a folder that nsc wrote, its manifest among them.

    Raises:
        PackageError: no such folder, or a folder that nsc did not write.
    """
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        listed = Manifest.from_text(text).files
        files = {name: (folder / name).read_text(encoding="utf-8") for name in listed}
    except PackageError as error:
        raise PackageError(f"{folder} is no package that this nsc reads: {error}") from None
    except (OSError, ValueError) as error:
        raise PackageError(
            f"{folder} is no package that nsc compile wrote ({error}): compile it again"
        ) from None
    return files | {MANIFEST: text}


def _check_same(name: str, facts: Mapping[str, Any], others: Mapping[str, Any], where: str) -> None:
    """Raise PackageError, with the facts that differ, unless the facts of a manifest and others agree."""

    def as_json(facts: Mapping[str, Any], key: str) -> str:
        # As text: 4, 4.0 and True are equal in Python.
        return json.dumps(facts[key]) if key in facts else "nothing"

    both = {key: (as_json(facts, key), as_json(others, key)) for key in {**facts, **others}}
    differing = [f"{key!r} is {a}, and {where} {b}" for key, (a, b) in both.items() if a != b]
    if differing:
        raise PackageError(f"in the manifest of {name!r} {'; '.join(differing)}: {_AGAIN}")


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value

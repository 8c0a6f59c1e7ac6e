"""The manifest of a package, which the compiler writes and the runtime reads: what it is, and its files.

Packages are of a kind, of KINDS; the class of a kind lists the facts that its manifests have. A kernel states
the facts that its calls depend on too (`Manifest.stated`): in its source, and in its binary.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
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
# What packages of relaxed networks for processors have besides.
TABLES = "tables.json"
# Those of which kernels state the SHA-256.
STATED_FILES = (NETWORK, PROOF)

_AGAIN = "compile the package again"
# Where a kernel's source states its facts: the string that nsc_facts holds or returns.
_STATEMENT = re.compile(r'\bnsc_facts\b[^"\n]*("(?:[^"\\\n]|\\.)*")')
# The verdicts of proofs that packages have.
_ACCEPTED = ("proved", "unproved")

AnyManifest = TypeVar("AnyManifest", bound="Manifest")


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class _Fact:
    """How a fact of a manifest is checked, and how JSON has it.

    Attributes:
        is_right: whether a value may be the fact.
        write: from the fact to JSON.
        read: back. What is not of the fact's form it leaves as it is, for `is_right` to refuse.
        stated_by: the targets whose kernels state it.
    """

    is_right: Callable[[Any], bool]
    write: Callable[[Any], Any] = _unchanged
    read: Callable[[Any], Any] = _unchanged
    stated_by: tuple[str, ...] = tuple(TARGETS)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _is_optional_name(value: object) -> bool:
    return value is None or _is_name(value)


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_whole_from(least: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and value >= least


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and 0 <= value < 1


def _are_outputs(value: object) -> bool:
    """Whether something is None, or pairs of a wire and a rank, no wire twice and no rank twice."""
    if value is None:
        return True
    if not isinstance(value, tuple) or not value:
        return False
    if not all(isinstance(output, tuple) and len(output) == 2 for output in value):
        return False
    return all(
        all(map(_is_whole_from(0), column)) and _are_different(column) for column in zip(*value, strict=True)
    )


def _are_sizes(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and all(map(_is_whole_from(1), value))


def _are_some_of(table: Mapping[str, object]) -> Callable[[object], bool]:
    def are_right(names: object) -> bool:
        return (
            isinstance(names, tuple)
            and len(names) > 0
            and all(isinstance(name, str) and name in table for name in names)
            and _are_different(names)
        )

    return are_right


def _are_different(values: tuple[Any, ...]) -> bool:
    return len(set(values)) == len(values)


def _is_launch(value: object) -> bool:
    return value is None or isinstance(value, Launch)


def _are_files(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, (*value, *value.values())))


def _is_inside(name: str) -> bool:
    """Whether a file's name leads nowhere but into the package's folder."""
    return name not in ("", ".", "..") and not {"/", "\\", "\0"} & set(name)


def _read_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _write_outputs(value: Any) -> Any:
    return None if value is None else [list(output) for output in value]


def _read_outputs(value: Any) -> Any:
    return tuple(map(_read_tuple, value)) if isinstance(value, list) else value


def _write_reals(value: Any) -> Any:
    return {real: list(REALS[real].serves) for real in value}


def _read_reals(value: Any) -> Any:
    return tuple(value) if isinstance(value, dict) else value


def _write_launch(value: Any) -> Any:
    return {} if value is None else asdict(value)


def _read_launch(value: Any) -> Any:
    try:
        return None if value == {} else Launch(**value)
    except (TypeError, ValueError):
        return value


# Of every fact of a manifest: how it is checked, and how JSON has it.
_FACTS = {
    "name": _Fact(_is_name),
    "nsc": _Fact(_is_text, stated_by=()),
    "library": _Fact(_is_text),
    "command": _Fact(_is_text, stated_by=()),
    "network": _Fact(_is_text),
    "proof": _Fact(_is_text),
    "targets": _Fact(_are_some_of(TARGETS), list, _read_tuple, stated_by=()),
    "files": _Fact(_are_files, dict, stated_by=()),
    "n": _Fact(_is_whole_from(1)),
    "size": _Fact(_is_whole_from(0)),
    "depth": _Fact(_is_whole_from(0)),
    "selection": _Fact(_is_optional_name),
    "outputs": _Fact(_are_outputs, _write_outputs, _read_outputs),
    "sigmoid": _Fact(_is_text),
    "art_lambda": _Fact(_is_share),
    "error_free": _Fact(_is_flag),
    "reals": _Fact(_are_some_of(REALS), _write_reals, _read_reals),
    "cuda": _Fact(_is_launch, _write_launch, _read_launch, stated_by=("cuda",)),
    "window": _Fact(_are_sizes, list, _read_tuple),
    "rank": _Fact(_is_whole_from(0)),
    "output": _Fact(_is_whole_from(0)),
}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a package is: what those of every kind say.

    Attributes:
        kind: of package, a key of KINDS.
        name: a Python identifier, the name of the package and of what it is loaded as.
        nsc: the version of nsc that wrote it.
        library: the digest of the kernel library that its kernels were written for.
        command: a command that makes the package again.
        network: the digest of the network.
        proof: the verdict of its proof.
        targets: what its kernels are compiled for, keys of TARGETS.
        files: the package's other files, name to SHA-256.

    Raises:
        PackageError: when built, for a fact of another type, outside its range, or at odds with another.
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
        for name, fact in _facts_of(type(self)).items():
            self._check(name, fact.is_right(getattr(self, name)))
        for name in self._at_odds():
            self._check(name, False)
        if not all(map(_is_inside, self.files)):
            raise PackageError(f"the manifest lists a file outside the folder: {_AGAIN}")
        for target in self.targets:
            self._check_lists(self._stated_files(target))
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    def _at_odds(self) -> Iterable[str]:
        """Return the facts that others rule out; each may be one for itself."""
        return ()

    @property
    def sources(self) -> dict[str, str]:
        """The file of each target's source."""
        return {target: f"{self.name}{TARGETS[target].suffix}" for target in self.targets}

    def stated(self, target: str) -> str:
        """Return what a target's kernel states of itself, as JSON: the facts that its calls depend on."""
        facts, stated = self._written(), {"abi": KERNEL_ABI, "kind": self.kind}
        for name, fact in _facts_of(type(self)).items():
            if target in fact.stated_by:
                stated[name] = facts[name]
        return json.dumps(stated | {name: self.files[name] for name in self._stated_files(target)})

    def _stated_files(self, target: str) -> tuple[str, ...]:
        """Return the files of which a target's kernel states the SHA-256."""
        return STATED_FILES

    def with_files(self: AnyManifest, texts: Mapping[str, str]) -> AnyManifest:
        """Return the manifest of a package of these texts.

        Raises:
            PackageError: a target's source is not among them, or the network or the proof is another one.
        """
        manifest = replace(self, files={name: digest(text) for name, text in texts.items()})
        manifest._check_lists(self.sources.values())
        for name in self.files:
            manifest._check("files", manifest.files.get(name) == self.files[name])
        return manifest

    def to_text(self) -> str:
        """Return the manifest as it is written, JSON."""
        return json.dumps({"format": PACKAGE_FORMAT, **self._written()}, indent=1) + "\n"

    @classmethod
    def from_text(cls: type[AnyManifest], text: str) -> AnyManifest:
        """Return the manifest that a text holds.

        Raises:
            PackageError: no manifest; one of another version or kind; a wrong fact, which is named.
        """
        try:
            facts = read_json(text)
            format_, abi, name, kind = facts["format"], *map(facts.get, ("abi", "name", "kind"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PackageError(f"no readable manifest ({error}): {_AGAIN}") from None
        if format_ != PACKAGE_FORMAT or type(abi) is not int or abi != KERNEL_ABI:
            raise PackageError(
                f"package {name!r} has format {format_!r} and kernel interface {abi!r}, this nsc reads "
                f"{PACKAGE_FORMAT!r} and {KERNEL_ABI}: compile it again"
            )
        if isinstance(facts.get("library"), str) and facts["library"] != library.digest():
            raise PackageError(
                f"package {name!r} was written by nsc {facts.get('nsc')!r} for another kernel library than "
                f"this nsc {VERSION} has: compile it again"
            )
        found = KINDS.get(kind) if isinstance(kind, str) else None
        if found is None:
            raise _wrong("kind", kind)
        if not issubclass(found, cls):
            raise PackageError(f"package {name!r} is of the kind {kind!r}, not {cls.kind!r}: use nsc.load")
        values = {}
        for key, fact in _facts_of(found).items():
            if key not in facts:
                raise _wrong(key, None)
            values[key] = fact.read(facts[key])
        manifest = found(**values)
        manifest._check_lists(manifest.sources.values())
        written = manifest._written()
        for key in facts.keys() - written.keys() - {"format"}:
            raise PackageError(f"the manifest has {key!r}, which nsc does not write: {_AGAIN}")
        for key, value in written.items():
            # As text: 4, 4.0 and True are equal in Python.
            if json.dumps(value) != json.dumps(facts[key]):
                raise _wrong(key, facts[key])
        return manifest

    @classmethod
    def of_files(cls: type[AnyManifest], texts: Mapping[str, str]) -> AnyManifest:
        """Return the manifest of a package's files, which are those that nsc wrote, and say what it says.

        Args:
            texts: name to text, the manifest among them.

        Raises:
            PackageError: as `from_text`; a missing or changed file, or one that is at odds with the manifest.
        """
        if MANIFEST not in texts:
            raise PackageError(f"no readable manifest: there is none: {_AGAIN}")
        manifest = cls.from_text(texts[MANIFEST])
        manifest.check_files(texts)
        return manifest

    def check_files(self, texts: Mapping[str, str]) -> None:
        """Raise PackageError unless the package's files are those that nsc wrote, and say what it says."""
        for file, wanted in self.files.items():
            if file not in texts or digest(texts[file]) != wanted:
                raise PackageError(
                    f"{self.name}: {file} was changed or is missing since nsc wrote it: {_AGAIN} (an edited "
                    "source is not covered by its proof)"
                )
        proof = _parsed(texts[PROOF])
        verdict = proof.get("verdict") if isinstance(proof, dict) else None
        if verdict != self.proof or verdict not in _ACCEPTED:
            raise PackageError(
                f"{self.name}: {PROOF} says {verdict!r}, the manifest says {self.proof!r}, and kernels are "
                f"{' or '.join(_ACCEPTED)}: {_AGAIN}"
            )
        for target, file in self.sources.items():
            literal = _STATEMENT.search(texts[file])
            check_stated(self.stated(target), None if literal is None else _parsed(literal[1]), file)

    def _written(self) -> dict[str, Any]:
        """Return the facts as JSON has them, in their order in the manifest; the files come last."""
        facts = {name: fact.write(getattr(self, name)) for name, fact in _facts_of(type(self)).items()}
        files = facts.pop("files")
        return {"abi": KERNEL_ABI, "kind": self.kind, **facts, "files": files}

    def _check(self, name: str, is_right: bool) -> None:
        if not is_right:
            raise _wrong(name, getattr(self, name))

    def _check_lists(self, needed: Iterable[str]) -> None:
        """Raise PackageError unless the manifest lists some files."""
        missing = [file for file in needed if file not in self.files]
        if missing:
            raise PackageError(f"{self.name}: the manifest does not list {missing}: {_AGAIN}")


@dataclass(frozen=True, kw_only=True)
class RelaxedManifest(Manifest):
    """What a package of a relaxed network is, beside what every package is.

    Attributes:
        n: number of wires.
        size: number of comparators.
        depth: number of layers.
        selection: what is selected, a key of `compiler.selection.SELECTIONS`; None: the network sorts.
        outputs: of a network that selects, each selected wire and its rank, 0 the smallest, in the order of
            the results. None: the network sorts, wire w carries rank w.
        sigmoid: the name of the relaxation's sigmoid.
        art_lambda: the strength of the activation replacement trick.
        error_free: whether forward results are exact.
        reals: the arithmetic types that its kernels are compiled for, keys of REALS.
        cuda: the launch parameters of the CUDA kernels; None where there are none.
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

    def _stated_files(self, target: str) -> tuple[str, ...]:
        if target != "cpu":
            return STATED_FILES
        # What the engine runs without a look at the kernel.
        return (*STATED_FILES, TABLES, *map(engine_source, self.reals))

    def _at_odds(self) -> Iterable[str]:
        if any(number >= self.n for output in self.outputs or () for number in output):
            yield "outputs"
        if (self.selection is None) != (self.outputs is None):
            yield "selection"
        if (self.cuda is None) == ("cuda" in self.targets):
            yield "cuda"


@dataclass(frozen=True, kw_only=True)
class FilterManifest(Manifest):
    """What a package of a filter is, beside what every package is.

    Attributes:
        window: planes, rows and columns of the window.
        rank: which of its values is selected, 0 the smallest.
        output: the wire of the network that carries it.
    """

    kind: ClassVar[str] = "filter"

    window: tuple[int, int, int]
    rank: int
    output: int

    def _at_odds(self) -> Iterable[str]:
        values = math.prod(self.window)
        yield from (name for name in ("rank", "output") if getattr(self, name) >= values)
        if self.targets != ("cpu",):
            yield "targets"
        if self.proof != "proved":
            yield "proof"


# The kinds of packages.
KINDS: dict[str, type[Manifest]] = {each.kind: each for each in (RelaxedManifest, FilterManifest)}


def _facts_of(kind: type[Manifest]) -> dict[str, _Fact]:
    """Return the facts of the manifests of a kind, by their names."""
    return {each.name: _FACTS[each.name] for each in fields(kind)}


def engine_source(real: str) -> str:
    """Return the file of a package with the source of the engine for an arithmetic type."""
    return f"engine_{REALS[real].suffix}.cpp"


def digest(text: str) -> str:
    """Return the SHA-256 of a file's text, as manifests have it."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_files(folder: Path) -> dict[str, str]:
    """Return the texts of a folder that nsc wrote, its manifest among them.

    Raises:
        PackageError: no such folder, or one that nsc did not write.
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

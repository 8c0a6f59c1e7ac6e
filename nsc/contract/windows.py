"""Windows: what the compiler tells the runtime of a filter, and what stands outside of an image."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType

from nsc.contract.manifest import (
    MANIFEST,
    NETWORK,
    PROOF,
    STATED_FILES,
    are_texts,
    check_proof,
    check_stated,
    check_texts,
    is_inside,
    read_files,
    stated_in,
)
from nsc.errors import PackageError
from nsc.strict_json import read_json


class Mode(IntEnum):
    """What stands outside of an image, by scipy.ndimage's names: of a row a b c d,

    reflect d c b a | a b c d | d c b a, mirror d c b | a b c d | c b a, nearest a a a | a b c d | d d d,
    wrap a b c d | a b c d | a b c d, constant one value everywhere.
    """

    REFLECT = 0
    NEAREST = 1
    MIRROR = 2
    CONSTANT = 3
    WRAP = 4


MODES = {mode.name.lower(): mode for mode in Mode}


@dataclass(frozen=True)
class WindowSource:
    """The C++ source of a filter.

    Attributes:
        name: of the kernel, an identifier.
        version: of nsc.
        shape: planes, rows and columns of the window.
        rank: which of its values is selected, 0 the smallest.
        facts: what the kernel states of itself, JSON.
        text: its source. A first line that defines NSC_ELEMENT chooses the type, another the channels.
    """

    name: str
    version: str
    shape: tuple[int, int, int]
    rank: int
    facts: str
    text: str


def for_channels(text: str, channels: int) -> str:
    """Return the source of a filter for pixels of so many channels, values that lie side by side."""
    return text if channels == 1 else f"#define NSC_CHANNELS {channels}\n{text}"


FILTER_FORMAT = "nsc-filter/1"
# The version of the C interface of filters.
FILTER_ABI = 2


@dataclass(frozen=True)
class FilterManifest:
    """What a package of a filter is.

    Attributes:
        name: a Python identifier, the name of the package.
        nsc: the version of nsc that wrote it.
        command: a command that makes the package again.
        window: planes, rows and columns of the window.
        rank: which of its values is selected, 0 the smallest.
        output: the wire of the network that carries it.
        network: the digest of the network of one window.
        files: the package's other files, name to SHA-256.

    Raises:
        PackageError: when built, for a fact of another type or outside its range.
    """

    name: str
    nsc: str
    command: str
    window: tuple[int, int, int]
    rank: int
    output: int
    network: str
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        for key in ("name", "nsc", "command", "network"):
            self._check(key, isinstance(getattr(self, key), str))
        self._check("name", self.name.isidentifier())
        is_window = isinstance(self.window, tuple) and len(self.window) == 3
        self._check("window", is_window and all(type(size) is int and size >= 1 for size in self.window))
        for key in ("rank", "output"):
            number = getattr(self, key)
            self._check(key, type(number) is int and 0 <= number < math.prod(self.window))
        is_files = isinstance(self.files, Mapping) and are_texts(self.files)
        self._check("files", is_files and {self.source, NETWORK, PROOF} <= set(self.files))
        self._check("files", all(map(is_inside, self.files)))
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    @property
    def source(self) -> str:
        """The file of the kernel's source."""
        return f"{self.name}.cpp"

    @property
    def stated(self) -> str:
        """What the kernel states of itself, JSON."""
        facts = {key: getattr(self, key) for key in ("name", "window", "rank", "output", "network")}
        return stated_facts(facts, self.files)

    def check_files(self, texts: Mapping[str, str]) -> None:
        """Raise PackageError unless the package's files are those that nsc wrote, and say what it says."""
        check_texts(self.name, self.files, texts)
        check_proof(self.name, texts[PROOF], "proved")
        check_stated(self.stated, stated_in(texts[self.source]), self.source)

    def to_text(self) -> str:
        """Return the manifest as it is written, JSON."""
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        head = {"format": FILTER_FORMAT, "abi": FILTER_ABI}
        return (
            json.dumps(head | facts | {"window": list(self.window), "files": dict(self.files)}, indent=1)
            + "\n"
        )

    @classmethod
    def from_text(cls, text: str) -> FilterManifest:
        """Return the manifest that a text holds.

        Raises:
            PackageError: no manifest of a filter, one of another version, or one with a wrong fact.
        """
        try:
            facts = read_json(text)
            format_, abi = facts["format"], facts.get("abi")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PackageError(f"no readable manifest ({error}): compile the package again") from None
        if format_ != FILTER_FORMAT or type(abi) is not int or abi != FILTER_ABI:
            raise PackageError(
                f"the filter has format {format_!r} and kernel interface {abi!r}, this nsc reads "
                f"{FILTER_FORMAT!r} and {FILTER_ABI}: compile it again"
            )
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if name not in facts]
        strange = sorted(facts.keys() - {"format", "abi", *names})
        if missing or strange:
            raise PackageError(f"the manifest lacks {missing} and has {strange}: compile the package again")
        window = facts["window"]
        facts = {name: facts[name] for name in names}
        return cls(**facts | {"window": tuple(window) if isinstance(window, list) else window})

    def _check(self, name: str, is_right: bool) -> None:
        if not is_right:
            raise PackageError(
                f"the manifest's {name!r} is {getattr(self, name)!r}: compile the package again"
            )


def stated_facts(facts: Mapping[str, object], digests: Mapping[str, str]) -> str:
    """Return what a filter's kernel states of itself, JSON: what its calls depend on.

    Args:
        facts: name, window, rank, output and network, as of FilterManifest.
        digests: file to SHA-256, of STATED_FILES at least.
    """
    return json.dumps({"abi": FILTER_ABI, **facts} | {name: digests[name] for name in STATED_FILES})


def is_filter(folder: Path) -> bool:
    """Say whether a folder's manifest is that of a filter, of any version."""
    try:
        facts = read_json((folder / MANIFEST).read_text(encoding="utf-8"))
        return str(facts["format"]).startswith(FILTER_FORMAT.split("/")[0] + "/")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def read_filter_files(folder: Path) -> dict[str, str]:
    """Return the texts of the files of a folder that `nsc compile --window` wrote, its manifest among them.

    Raises:
        PackageError: no such folder, or one that nsc did not write.
    """
    return read_files(folder, FilterManifest, "filter")

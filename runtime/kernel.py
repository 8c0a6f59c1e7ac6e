"""Kernel: one generated package, read, checked, built on first use and called through its C interface.

Needs no torch: the tensors' addresses come from `dispatch`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.errors import BuildError, PackageError, ToolchainError
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain
from nsc.strict_json import read_json
from nsc.wording import argument

PACKAGE_FORMAT = "nsc-package/1"
# The version of the C interface that this runtime speaks.
KERNEL_ABI = 7

# What there can be kernels for.
TARGETS = ("cpu", "cuda")
# Suffix of the C functions for an arithmetic type.
_SUFFIX = {"float32": "f32", "float64": "f64"}
_FACTS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "nsc": str,
    "n": int,
    "size": int,
    "depth": int,
    "outputs": (list, type(None)),
    "sigmoid": str,
    "art_lambda": (int, float),
    "error_free": bool,
    "reals": dict,
    "abi": int,
    "sources": dict,
    "cuda": dict,
    "files": dict,
}

# What a kernel states of itself in its source and, once built, in its binary; a CUDA kernel also the facts of
# its launches. compiler/package.py writes it.
_KERNEL_FACTS = (
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
)
_STATED = re.compile(r'\bnsc_facts\b[^"\n]*("(?:[^"\\\n]|\\.)*")')


@dataclass(frozen=True)
class Launch:
    """What launches of CUDA kernels depend on, as the manifest says; see compiler/schedule/cuda_levels.py."""

    slots: int
    arrays: int
    kept_rows: int
    kept_rows_permutation: int
    tile_threads: int
    tile_lanes: int
    widest_group: int
    routing_threads: int
    sample_threads: int
    keys_threads: int


@dataclass(frozen=True)
class Outputs:
    """What a network that does not sort selects, in the order in which it is given out.

    Attributes:
        wires: the wires that carry it.
        ranks: the rank of each, 0 the smallest value.
    """

    wires: tuple[int, ...]
    ranks: tuple[int, ...]


Pairs = npt.NDArray[np.int64]


class Kernel:
    """A generated package's operator, before torch.

    Two kernels of the same files are the same kernel: they share the `spec` by which the operators
    registered with torch name it.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """Check a package's files, the manifest among them.

        Raises:
            PackageError: a missing, changed or malformed file, or one of another nsc version's
                interface.
        """
        self.files = MappingProxyType(dict(files))
        facts = _checked_facts(self.files)
        self.name: str = facts["name"]
        self.version: str = facts["nsc"]
        self.n: int = facts["n"]
        self.size: int = facts["size"]
        self.depth: int = facts["depth"]
        # The wires that carry what is selected and the ranks they carry; None: wire w carries rank w.
        self.outputs = _outputs(facts["outputs"])
        self.sigmoid: str = facts["sigmoid"]
        self.art_lambda = float(facts["art_lambda"])
        self.error_free: bool = facts["error_free"]
        # Dtype of a tensor to the arithmetic type that serves it.
        self.serves: dict[str, str] = {d: real for real, served in facts["reals"].items() for d in served}
        # The arithmetic types that it is compiled for.
        self.reals = frozenset(self.serves.values())
        # Target to source text.
        self.sources: dict[str, str] = {target: self.files[file] for target, file in facts["sources"].items()}
        # Target to what its kernels must state of themselves.
        self.facts: dict[str, str] = {target: _kernel_facts(facts, target) for target in self.sources}
        self._launch_facts: dict[str, int] = facts["cuda"]
        self.spec = f"{self.name}-{hashlib.sha256(self.files['manifest.json'].encode()).hexdigest()[:16]}"
        self._lock = threading.Lock()
        self._library: _Library | None = None
        self._unbuilt: str | None = None

    @classmethod
    def from_folder(cls, folder: Path) -> Kernel:
        """Read a generated folder.

        Raises:
            PackageError: no such folder, or not one that nsc wrote.
        """
        try:
            manifest = (folder / "manifest.json").read_text(encoding="utf-8")
            listed = read_json(manifest)["files"]
            if not all(isinstance(name, str) and Path(name).name == name for name in listed):
                raise PackageError(f"{folder}: the manifest lists a file outside the folder")
            files = {name: (folder / name).read_text(encoding="utf-8") for name in listed}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise PackageError(
                f"{folder} is no package that nsc compile wrote ({error}): compile it again"
            ) from None
        return cls(files | {"manifest.json": manifest})

    def build(self) -> cache.Artifact:
        """Return the built library, compiled unless the cache has it.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed.
        """
        return cache.build(self.name, self.sources["cpu"], find_toolchain(), self.version)

    @cached_property
    def launch(self) -> Launch:
        """What launches of the CUDA kernels depend on.

        Raises:
            PackageError: there are none.
        """
        if "cuda" not in self.sources:
            both = argument("targets", ("cpu", "cuda"))
            raise PackageError(f"{self.name} has no CUDA kernels: compile it with {both}")
        return Launch(**self._launch_facts)

    def library(self) -> _Library | None:
        """Return the loaded library; None, after one warning, on a machine with no compiler.

        Raises:
            BuildError: there is a compiler and it failed, or the library cannot be loaded.
        """
        if self._library is None and self._unbuilt is None:
            with self._lock:
                if self._library is None and self._unbuilt is None:
                    try:
                        self._library = _Library(self.build().binary, self.facts["cpu"], self.reals)
                    except ToolchainError as error:
                        self._unbuilt = str(error)
                        warnings.warn(
                            f"nsc: {error}. Until then {self.name} runs as plain torch, many times "
                            "slower, with the same results",
                            RuntimeWarning,
                            stacklevel=2,
                        )
        return self._library

    @cached_property
    def layers(self) -> tuple[Pairs, ...]:
        """The network's layers as (k, 2) arrays, columns lo and hi, for the plain torch reference."""
        return tuple(map(_expanded, json.loads(self.files["network.json"])["layers"]))


_kernels: dict[str, Kernel] = {}


def register(files: Mapping[str, str]) -> Kernel:
    """Return the kernel of a package's files, found by its `spec` in this process from now on."""
    kernel = Kernel(files)
    return _kernels.setdefault(kernel.spec, kernel)


def find(spec: str) -> Kernel:
    """Return the registered kernel of that name.

    Raises:
        PackageError: no package of that name was loaded in this process.
    """
    if spec not in _kernels:
        raise PackageError(
            f"kernel {spec} is not known in this process: import its generated package, or nsc.load "
            "its folder, before running a program that uses it"
        )
    return _kernels[spec]


def _outputs(pairs: list[list[int]] | None) -> Outputs | None:
    if pairs is None:
        return None
    wires, ranks = zip(*pairs, strict=True)
    return Outputs(wires, ranks)


def _expanded(items: list[list[int]]) -> Pairs:
    """Return the pairs of a layer; an item is [lo, hi] or a run [lo, hi, step, count]."""
    pairs = [
        np.array(item[:2]) + np.arange(item[3])[:, None] * item[2] if len(item) == 4 else [item]
        for item in items
    ]
    return np.concatenate(pairs).astype(np.int64)


def _checked_facts(files: Mapping[str, str]) -> dict[str, Any]:
    try:
        facts = read_json(files["manifest.json"])
        stated = facts["format"]
        listed = facts["files"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PackageError(f"no readable manifest ({error}): compile the package again") from None
    if stated != PACKAGE_FORMAT or facts.get("abi") != KERNEL_ABI:
        raise PackageError(
            f"package {facts.get('name')!r} has format {stated!r} and kernel interface "
            f"{facts.get('abi')!r}, this nsc reads {PACKAGE_FORMAT!r} and {KERNEL_ABI}: compile it again"
        )
    for key, kind in _FACTS.items():
        if key not in facts or not isinstance(facts[key], kind):
            raise PackageError(f"the manifest's {key!r} is {facts.get(key)!r}: compile the package again")
    for name, digest in listed.items():
        text = files.get(name)
        if text is None or hashlib.sha256(text.encode()).hexdigest() != digest:
            raise PackageError(
                f"{facts['name']}: {name} was changed or is missing since nsc wrote it: compile the "
                "package again (an edited source is not covered by its proof)"
            )
    _check_sources(facts, files)
    return dict(facts)


def _check_sources(facts: dict[str, Any], files: Mapping[str, str]) -> None:
    """Raise PackageError unless the sources are of kernels that are what the manifest says.

    What a call takes its memory for comes from the manifest, so an edited one could otherwise make it write
    beyond that memory.
    """
    sources = facts["sources"]
    if not sources or any(target not in TARGETS for target in sources):
        raise PackageError(
            f"the manifest's 'sources' are for {', '.join(map(repr, sources)) or 'nothing'}, kernels are for "
            f"{' and '.join(TARGETS)}: compile the package again"
        )
    needed = [file for file in (*sources.values(), "network.json") if str(file) not in facts["files"]]
    if needed:
        raise PackageError(f"{facts['name']}: the manifest does not list {needed}: compile the package again")
    for target, file in sources.items():
        literal = _STATED.search(files[str(file)])
        check_facts(_kernel_facts(facts, target), _read(literal[1]) if literal else None, file)


def _kernel_facts(facts: dict[str, Any], target: str) -> str:
    """Return what a kernel must state of itself if the manifest is right."""
    stated = {key: facts[key] for key in _KERNEL_FACTS} | {"network.json": facts["files"]["network.json"]}
    return json.dumps(stated | {"cuda": facts["cuda"]} if target == "cuda" else stated)


def check_facts(wanted: str, stated: object, where: str) -> None:
    """Raise PackageError unless a kernel states of itself what the manifest says.

    Args:
        wanted: what the manifest says, of `Kernel.facts`.
        stated: what the kernel says; None: nothing.
        where: the file that it is in.
    """
    if wanted == stated:
        return
    manifest, kernel = json.loads(wanted), _read(stated)
    if not isinstance(kernel, dict):
        raise PackageError(f"{where} does not state what kernel it is: compile the package again")
    wrong = [key for key in manifest if json.dumps(manifest[key]) != json.dumps(kernel.get(key))]
    said = "; ".join(f"{key!r} is {manifest[key]!r}, and {where} has {kernel.get(key)!r}" for key in wrong)
    raise PackageError(f"in the manifest of {manifest['name']!r} {said}: compile the package again")


def _read(text: object) -> object:
    """Return the value of a JSON text, None where it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class _Functions:
    """The C functions for one arithmetic type."""

    forward: Callable[..., int]
    backward: Callable[..., int]
    sort: Callable[..., int]


class _Library:
    """A loaded shared library that is what the manifest says; maps an arithmetic type to its functions."""

    def __init__(self, path: Path, facts: str, reals: Iterable[str]) -> None:
        try:
            library = ctypes.CDLL(str(path))
            library.nsc_facts.restype = ctypes.c_char_p
            library.nsc_prepare.restype = ctypes.c_int32
        except (OSError, AttributeError) as error:
            raise BuildError(
                f"cannot load {path}: {error}. If its folder is mounted noexec, set NSC_CACHE_DIR to "
                "one that is not"
            ) from None
        check_facts(facts, library.nsc_facts().decode(), str(path))
        if library.nsc_prepare():
            raise MemoryError(f"not enough memory for the tables of {path.name}")
        self.functions = {real: _functions(library, _SUFFIX[real]) for real in reals}


def _functions(library: ctypes.CDLL, suffix: str) -> _Functions:
    pointer, long, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    call: list[Any] = [word, long, pointer, pointer, long, pointer, long, long]
    signatures = {
        "forward": [*call, pointer, pointer, pointer],
        "backward": [*call, *[pointer] * 7],
        "sort": [long, *[pointer] * 4],
    }
    functions = {}
    for name, types in signatures.items():
        function = library[f"nsc_{name}_{suffix}"]
        function.argtypes = types
        function.restype = word
        functions[name] = function
    return _Functions(**functions)

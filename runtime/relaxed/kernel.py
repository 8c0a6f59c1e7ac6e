"""A kernel checks the files of one generated package, and is built on first use. It needs no torch."""

from __future__ import annotations

import ctypes
import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from nsc.contract.interface import REALS
from nsc.contract.launch import Launch
from nsc.contract.manifest import MANIFEST, NETWORK, TABLES, RelaxedManifest, engine_source
from nsc.contract.tables import FEWEST_LONG_WIRES, NetworkTables
from nsc.errors import PackageError, ToolchainError
from nsc.runtime.build import cache, prebuilt
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.devices.threads import Lock
from nsc.runtime.relaxed.library import Engine, Library, engine_library, engine_name
from nsc.wording import argument


@dataclass(frozen=True)
class Outputs:
    """The outputs of a network that selects, in the order of the results.

    Attributes:
        wires: the selected wires.
        ranks: the rank that each carries, 0 the smallest value.
        descends: whether the ranks are the highest ones, the largest value first, as `top_k` names them. They
            are the first places of a stable sort in descending order; other ranks are places of one in
            ascending order.
        places: the place of each rank in that order.
    """

    wires: tuple[int, ...]
    ranks: tuple[int, ...]
    descends: bool
    places: tuple[int, ...]


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
        self.manifest = RelaxedManifest.of_files(files)
        self.name = self.manifest.name
        self.n = self.manifest.n
        self.size = self.manifest.size
        self.depth = self.manifest.depth
        # The selected wires and their ranks; None: wire w carries rank w.
        self.outputs = _outputs(self.manifest)
        self.sigmoid = self.manifest.sigmoid
        self.art_lambda = float(self.manifest.art_lambda)
        self.error_free = self.manifest.error_free
        # The arithmetic types that it is compiled for.
        self.reals = frozenset(self.manifest.reals)
        # Dtype of a tensor to the arithmetic type that serves it.
        self.serves = {dtype: real for real in self.manifest.reals for dtype in REALS[real].serves}
        # Target to source text.
        self.sources = {target: files[file] for target, file in self.manifest.sources.items()}
        self.spec = f"{self.name}-{hashlib.sha256(files[MANIFEST].encode()).hexdigest()[:16]}"
        # Whether the network's own library serves; else the engine of its relaxation does.
        self.is_specialised = self.n >= FEWEST_LONG_WIRES
        self._lock = Lock()
        # The library or engine that serves now; None: `library` decides.
        self.serving: Library | Engine | None = None

    def __repr__(self) -> str:
        return f"Kernel({self.name}: n={self.n}, dtypes={list(self.serves)}, targets={list(self.sources)})"

    def build(self) -> cache.Artifact:
        """Return the network's own built library, compiled unless the cache has it.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed.
        """
        return cache.build(self.name, self.sources["cpu"], find_toolchain(relaxed=True))

    @property
    def engine_sources(self) -> dict[str, str]:
        """The source of the engine that runs this network in each arithmetic type."""
        return {real: self.files[engine_source(real)] for real in self.reals}

    @property
    def is_prebuilt(self) -> bool:
        """Whether an engine is prebuilt for each arithmetic type, so that no call needs a compiler."""
        name = engine_name(self.sigmoid)
        return all(prebuilt.find(name, source) for source in self.engine_sources.values())

    @property
    def launch(self) -> Launch:
        """The launch parameters of the CUDA kernels.

        Raises:
            PackageError: there are none.
        """
        if self.manifest.cuda is None:
            both = argument("targets", ("cpu", "cuda"))
            raise PackageError(f"{self.name} has no CUDA kernels: compile it with {both}")
        return self.manifest.cuda

    def specialise(self) -> None:
        """Let the network's own library serve from the next call on, which builds it."""
        if not self.is_specialised:
            with self._lock:
                self.is_specialised, self.serving = True, None

    def library(self) -> Library | Engine:
        """Return what runs the network now.

        - After `specialise`, and for a long network: the network's own library, built if it is not there.
        - Else, and without a compiler: the engine of its relaxation, which gives the same bits. Where it has
          no functions for a type, the plain torch reference serves.

        Raises:
            BuildError: there is a compiler and it failed, or the library cannot be loaded.
            PackageError: the engine's tables are another network's.
        """
        with self._lock:
            if self.serving is None:
                self.serving = self._opened()
            return self.serving

    def _opened(self) -> Library | Engine:
        if self.is_specialised:
            try:
                return self.own_library()
            except ToolchainError:
                pass  # an engine may be prebuilt
        return self.engine()

    def own_library(self) -> Library:
        """Return the network's own library, built unless it is there.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed, or the library cannot be loaded.
        """
        return Library(self.build().binary, self.reals)

    def engine(self) -> Engine:
        """Return the engine with this network. It is built, unless it is there, for a type that is called.

        Without a compiler a type whose engine is not prebuilt has no functions, after a warning.

        Raises:
            PackageError: the tables are another network's.
        """
        tables = NetworkTables.from_text(self.files[TABLES])
        if (tables.wires, tables.comparators, tables.layers) != (self.n, self.size, self.depth):
            raise PackageError(f"{self.name}: {TABLES} is of another network: compile the package again")
        return Engine(self._engine_of, tables)

    def _engine_of(self, real: str) -> ctypes.CDLL | None:
        try:
            return engine_library(self.sigmoid, self.engine_sources[real])
        except ToolchainError as error:
            warnings.warn(
                f"nsc: {error}. Until then {self.name} runs as plain torch in {real}, many times "
                "slower, with the same results",
                RuntimeWarning,
                stacklevel=2,
            )
            return None

    @cached_property
    def layers(self) -> tuple[Pairs, ...]:
        """The network's layers as (k, 2) arrays, columns lo and hi, for the plain torch reference.

        Raises:
            PackageError: the package names a family, as those of the largest networks do.
        """
        layers = json.loads(self.files[NETWORK]).get("layers")
        if layers is None:
            raise PackageError(
                f"{self.name}: a network of {self.size:,} comparators does not run as plain torch, which is "
                "needed without a compiler and for derivatives that no kernel has: choose a smaller n"
            )
        return tuple(map(_expanded, layers))


_kernels: dict[str, Kernel] = {}


def register_kernel(files: Mapping[str, str]) -> Kernel:
    """Return the kernel of a package's files, found by its `spec` in this process from now on."""
    kernel = Kernel(files)
    return _kernels.setdefault(kernel.spec, kernel)


def find_kernel(spec: str) -> Kernel:
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


def _outputs(manifest: RelaxedManifest) -> Outputs | None:
    if manifest.outputs is None:
        return None
    wires, ranks = zip(*manifest.outputs, strict=True)
    descending = tuple(range(manifest.n - 1, -1, -1))
    descends = ranks == descending[: len(ranks)]
    return Outputs(wires, ranks, descends, tuple(range(len(ranks))) if descends else ranks)


def _expanded(items: list[list[int]]) -> Pairs:
    """Return the pairs of a layer; an item is [lo, hi] or a progression [lo, hi, step, count]."""
    pairs = [
        np.array(item[:2]) + np.arange(item[3])[:, None] * item[2] if len(item) == 4 else [item]
        for item in items
    ]
    return np.concatenate(pairs).astype(np.int64)

"""Describe: from a family, a file or lists to the network."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nsc.compiler.families import FAMILIES, family_network, is_known_name, known_network
from nsc.compiler.formats import network_of_lists, read_network
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.errors import NetworkError
from nsc.wording import argument, count

# A network is named by a family, a known network, a network file, a Network, or comparators (lo, hi) in one
# list or a list for each layer.
Named: TypeAlias = "str | os.PathLike[str] | Network | Sequence[Any] | npt.NDArray[np.integer[Any]]"


def describe(
    network: Named,
    n: int | None = None,
    format: str | None = None,
    index_base: int | None = None,
    progress: Progress = SILENT,
    name: str | None = None,
) -> Network:
    """Return the network that a family, a file or lists stand for.

    Args:
        network: a family's name, the name of a network of the lists (`known_network`), the path of a network
            file, a Network, or comparators (lo, hi) in lists: flat, which are relayered, or a list for each
            layer.
        n: number of wires. A family needs it. A file or lists that show their number of wires are checked
            against it; others take it.
        format: a file's format, a name in FORMATS; None: found from its content.
        index_base: the number of a file's or a list's first wire, 0 or 1, where it could be either.
        progress: is told when reading begins.
        name: of the network, in a file that has several.

    Raises:
        NetworkError: no such family or file, no network in it or several, no n for a family, or an option of
            reading a file where none is read.

    >>> describe([(0, 1)], 2) == describe([[(0, 1)]]) == describe("bitonic", 2)
    True
    """
    progress.phase("read")
    if isinstance(network, list | tuple | np.ndarray):
        _refuse("lists take", format=format, name=name)
        return network_of_lists(network, n, index_base)
    if isinstance(network, Network):
        _refuse("a network takes", format=format, index_base=index_base, name=name)
        return _of_n_wires("the network", network, n)
    if not isinstance(network, str | os.PathLike):
        raise NetworkError(
            "a network is named by a family, a file, a Network or a list of comparators (lo, hi), got "
            f"{type(network).__name__}"
        )
    if isinstance(network, str) and is_family(network):
        _refuse(f"family {network} takes", format=format, index_base=index_base, name=name)
        if n is None:
            raise NetworkError(f"family {network} needs {argument('n')}, the number of wires")
        return family_network(network, n)
    if isinstance(network, str) and is_known_name(network):
        _refuse(f"{network} takes", format=format, index_base=index_base, name=name)
        return _of_n_wires(network, known_network(network), n)
    path = Path(network)
    looks_like_file = network and (os.path.exists(path) or path.suffix or len(path.parts) > 1)
    if not looks_like_file:
        near = difflib.get_close_matches(str(network), FAMILIES, n=1)
        raise NetworkError(
            f"{str(network)!r} is neither a family ({', '.join(FAMILIES)}), a known network such as "
            f"sort_16_60_10, nor a network file{''.join(f': did you mean {name}?' for name in near)}"
        )
    return read_network(path, n, format=format, index_base=index_base, name=name)


def is_family(network: object) -> bool:
    """Return whether a network is named by its family."""
    return isinstance(network, str) and network in FAMILIES


def _of_n_wires(subject: str, network: Network, n: int | None) -> Network:
    """Return a network that has the number of wires a user states."""
    if n is not None and n != network.n:
        raise NetworkError(
            f"{subject} has {count(network.n, 'wire')}, {argument('n', n)} disagrees: leave it out"
        )
    return network


def _refuse(subject: str, **reading: object) -> None:
    """Raise NetworkError for an option of reading files where no file is read."""
    for name, value in reading.items():
        if value is not None:
            raise NetworkError(f"{subject} no {argument(name)}, which says how to read a file: leave it out")

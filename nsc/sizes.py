"""Sizes: sorters for any number of values, from a few networks of one family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nsc.api import Options, compile
from nsc.arguments import integer, whole
from nsc.errors import LoweringError, NetworkError, OperandError
from nsc.operators.classes import sizes_of
from nsc.operators.lists import ListOptions
from nsc.operators.on_demand import on_demand
from nsc.operators.operands import check_dense
from nsc.operators.ragged import ragged_of
from nsc.operators.sorter import Sorter
from nsc.operators.targets import LossOptions, Target
from nsc.wording import argument, count

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Rows of x: a padded tensor, or one of the kinds of lists that `ragged_of` reads.
Rows = Any


class Sizes:
    """Sorters of one family for any number of values up to `most`, from a few networks.

    Its methods are those of `Sorter`. A call with m values along the axis takes the network of the next
    larger size, one of `sizes`, with +∞ in the place of the other values. So all calls of one size share a
    network and its kernel. `steepness` None means that of this network.

    x may be a padded tensor with `lengths` or `mask`, or lists of different lengths: a nested tensor of the
    jagged layout, a `torch.nn.utils.rnn.PackedSequence`, or a pair of values and offsets, as nested tensors
    have them. What has a number for each entry then comes back as such; P and what is selected come back
    padded.

    Args:
        network: the family's name.
        most: the largest number of values.
        options: those of `nsc.compile`.

    >>> import nsc, torch
    >>> sorters = nsc.compile_sizes("bitonic", 100)
    >>> sorters.sizes
    (8, 12, 16, 24, 32, 48, 64, 96, 100)
    >>> sorters.sort(torch.tensor([3.0, 1.0, 2.0]), steepness=50.0).round()
    tensor([1., 2., 3.])
    """

    def __init__(self, network: str, most: int, **options: Unpack[Options]) -> None:
        self.network = network
        self.most = integer("most", most, NetworkError)
        if self.most < 1:
            raise NetworkError(f"{argument('most')} must be 1 or more, got {most}")
        if "select" in options:
            raise LoweringError("Sizes sort all values: leave select out")
        self._options = tuple(sorted(options.items()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the networks, ascending."""
        return sizes_of(self.most)

    def __repr__(self) -> str:
        return f"Sizes({self.network!r}, {self.most})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sizes) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.network, self.most, self._options

    def sorter(self, m: int) -> Sorter:
        """Return the sorter that serves m values.

        Raises:
            OperandError: more than `most`, or none.
        """
        m = integer("m", m, OperandError)
        if not 1 <= m <= self.most:
            raise OperandError(
                f"{self!r} sorts 1 … {self.most} values, got {count(m, 'value')}: make it with "
                f"{argument('most', max(m, 1))}"
            )
        size = next(size for size in self.sizes if size >= m)
        return _sorter(self.network, size, self._options)

    def sort(self, x: Rows, steepness: Any = None, **options: Unpack[ListOptions]) -> Any:
        """Return the relaxed sorted values, as x; see `Sorter.sort`."""
        call = _Call(self, "sort", x, options)
        return call.rows(call.run(steepness))

    __call__ = sort

    def sort_with_permutation(
        self, x: Rows, steepness: Any = None, **options: Unpack[ListOptions]
    ) -> tuple[Any, Tensor]:
        """Return the relaxed sorted values, as x, and P (…, m, m); see `Sorter.sort_with_permutation`."""
        call = _Call(self, "sort_with_permutation", x, options)
        values, p = call.run(steepness)
        return call.rows(values), p[..., : call.m, : call.m]

    def rank(self, x: Rows, steepness: Any = None, **options: Unpack[ListOptions]) -> Any:
        """Return the soft ranks, as x; see `Sorter.rank`."""
        call = _Call(self, "rank", x, options)
        return call.rows(call.run(steepness))

    def route(
        self, x: Rows, payload: Tensor, steepness: Any = None, **options: Unpack[ListOptions]
    ) -> Tensor:
        """Return P @ payload for a padded payload (…, m, columns); see `Sorter.route`."""
        call = _Call(self, "route", x, options)
        return call.cut(call.run(steepness, call.padded(payload, 1)), 1)

    def topk(
        self, x: Rows, k: int, steepness: Any = None, **options: Unpack[ListOptions]
    ) -> tuple[Tensor, Tensor]:
        """Return the k largest values, largest first, and their rows of P (…, k, m); see `Sorter.topk`."""
        call = _Call(self, "topk", x, options)
        values, rows = call.run(steepness, k)
        return values, rows[..., : call.m]

    def loss(
        self,
        name: str,
        x: Rows,
        target: Target | Any | None = None,
        steepness: Any = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return a loss of P against a target, by its name; what has the shape of x may be lists as x.

        See `Sorter.loss`.
        """
        call = _Call(self, "loss", x, options)
        return call.sorter.loss(name, call.x, call.target(target), steepness, **call.options_of_a_loss())

    def cross_entropy(
        self,
        x: Rows,
        target: Target | Any | None = None,
        steepness: Any = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return the paper's loss against a target; see `loss`."""
        return self.loss("cross_entropy", x, target, steepness, **options)

    def binary_cross_entropy(
        self,
        x: Rows,
        target: Target | Any | None = None,
        steepness: Any = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return the binary cross entropy of P; see `loss`."""
        return self.loss("binary_cross_entropy", x, target, steepness, **options)


class _Call:
    """A call of a sorter: its operands padded to the sorter's size."""

    def __init__(self, sizes: Sizes, method: str, x: Rows, options: Any) -> None:
        self._method = method
        self._options = dict(options)
        self._ragged = ragged_of(x)
        if self._ragged is not None:
            x = self._ragged.padded
            self._options.setdefault("lengths", self._ragged.lengths)
        check_dense(f"{sizes!r}.{method}", "x", x)
        if not x.dim():
            raise OperandError(f"{sizes!r}.{method}: x has no axis: give one value as x.unsqueeze(0)")
        dim = self._options.setdefault("dim", -1)
        if whole(dim) is None or not -x.dim() <= dim < x.dim():
            raise OperandError(f"{sizes!r}.{method}: dim must be in {-x.dim()} … {x.dim() - 1}, got {dim!r}")
        self._dim = dim
        self.m = x.shape[dim]
        self.sorter = sizes.sorter(self.m)
        self._missing = self.sorter.n - self.m
        self.x = self.padded(x)
        if self._missing:
            self._name_entries(x)

    def _name_entries(self, x: Tensor) -> None:
        if (mask := self._options.get("mask")) is not None:
            self._options["mask"] = self.padded(mask)
        elif self._options.get("lengths") is None:
            samples = x.movedim(self._dim, -1).shape[:-1]
            self._options["lengths"] = torch.full(samples, self.m, device=x.device)

    def padded(self, operand: Tensor, columns: int = 0) -> Tensor:
        """Return an operand with as many places along the axis as the sorter has wires.

        Args:
            operand: it has the axes of x, then so many axes of columns.
            columns: the number of these axes.
        """
        if not self._missing:
            return operand
        axes = operand.dim() - columns
        behind = axes - 1 - self._dim % axes + columns
        return torch.nn.functional.pad(operand, [0] * (2 * behind) + [0, self._missing])

    def cut(self, result: Tensor, columns: int = 0) -> Tensor:
        """Return a result without the places that `padded` added."""
        return result.narrow(self._dim % (result.dim() - columns), 0, self.m)

    def rows(self, result: Tensor) -> Any:
        """Return a result that has a number for each entry, as x was given."""
        cut = self.cut(result)
        return cut if self._ragged is None else self._ragged.closed(cut)

    def run(self, steepness: Any, *operands: Any) -> Any:
        return getattr(self.sorter, self._method)(self.x, *operands, steepness, **self._options)

    def target(self, target: Any) -> Any:
        if target is None:
            return None
        is_pair = isinstance(target, tuple | list)
        if is_pair and (self._ragged is None or ragged_of(target) is None):
            return tuple(map(self._of_items, target))
        if isinstance(target, Tensor) and target.is_floating_point() and not target.is_nested:
            return torch.nn.functional.pad(target, [0, self._missing] * 2) if self._missing else target
        return self._of_items(target)

    def options_of_a_loss(self) -> dict[str, Any]:
        for name in ("relevance", "weight"):
            given = self._options.get(name)
            if given is not None and (name == "relevance" or ragged_of(given) or given.dim() == self.x.dim()):
                self._options[name] = self._of_items(given)
        return self._options

    def _of_items(self, given: Any) -> Tensor:
        ragged = ragged_of(given)
        return self.padded(given if ragged is None else ragged.padded_to(self.m))


@on_demand
def _sorter(network: str, size: int, options: tuple[tuple[str, Any], ...]) -> Sorter:
    made = compile(network, size, **dict(options))
    assert isinstance(made, Sorter)
    return made


def compile_sizes(network: str, most: int, **options: Unpack[Options]) -> Sizes:
    """Return sorters of one family for any number of values up to a largest one.

    A network is compiled when a call first needs its size.

    Args:
        network: the family's name.
        most: the largest number of values.
        options: those of `nsc.compile`, such as relaxation; not select.

    Raises:
        NetworkError: no such family, or fewer than 1 value.
        LoweringError: options that `nsc.compile` refuses.

    >>> import nsc, torch
    >>> lists = torch.nested.nested_tensor([torch.tensor([3.0, 1.0]), torch.tensor([5.0, 4.0, 6.0])],
    ...                                    layout=torch.jagged)
    >>> ranks = nsc.compile_sizes("bitonic", 100).rank(lists, steepness=50.0)
    >>> [each.round().tolist() for each in ranks.unbind()]
    [[1.0, 0.0], [1.0, 0.0, 2.0]]
    """
    made = Sizes(network, most, **options)
    made.sorter(1)  # refuses wrong arguments here
    return made

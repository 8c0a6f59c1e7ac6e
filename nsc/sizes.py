"""Sizes: sorters for any number of values, from a few networks of one family."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from nsc import api
from nsc.api import Options, compile
from nsc.arguments import integer, is_name
from nsc.compiler.describe import is_family
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import MAX_WIRES
from nsc.contract.routings import LOSSES
from nsc.errors import LoweringError, NetworkError, OperandError
from nsc.operators.classes import sizes_of
from nsc.operators.operands import axis_of, check_dense, k_of
from nsc.operators.operator import Attribute, Operator, on_demand
from nsc.operators.ragged import Ragged, ragged_of
from nsc.operators.sorter import Sorter
from nsc.operators.targets import LossOptions, Target
from nsc.wording import argument, count

if TYPE_CHECKING:
    from typing_extensions import Unpack

Given = ParamSpec("Given")
Result = TypeVar("Result")
AnyOperator = TypeVar("AnyOperator", bound="Operator | Sizes")
# Rows of x: a padded tensor, or one of the kinds of lists that `ragged_of` reads.
Rows = Any
_SIZES = sizes_of(MAX_WIRES)
# How many sorters are kept. Each holds the texts of its package.
_MOST_KEPT = 64


def _padded(
    method: Callable[Concatenate[Sorter, Tensor, Given], Result],
) -> Callable[Concatenate[Sizes, Rows, Given], Result]:
    """Return a method of a Sorter as one of Sizes; its results are padded."""
    return _on_sizes(method, gives_rows=False)


def _as_given(
    method: Callable[Concatenate[Sorter, Tensor, Given], object],
) -> Callable[Concatenate[Sizes, Rows, Given], Any]:
    """Return a method of a Sorter as one of Sizes; its results shaped like x are lists if x is."""
    return _on_sizes(method, gives_rows=True)


def _on_sizes(method: Callable[..., Any], gives_rows: bool) -> Callable[..., Any]:
    places = {name: place for place, name in enumerate(list(inspect.signature(method).parameters)[2:])}

    def found(name: str, given: tuple[Any, ...], options: dict[str, Any], other: Any) -> Any:
        place = places.get(name, len(given))
        return given[place] if place < len(given) else options.get(name, other)

    @functools.wraps(method)
    def call(sizes: Sizes, x: Rows, *given: Any, **options: Any) -> Any:
        caller, k = f"{sizes!r}.{method.__name__}", None
        ragged = ragged_of(caller, "x", x)
        if ragged is not None:
            ragged.check_alone(caller, options.get("lengths"), options.get("mask"))
            x, names = ragged.padded, iter(places)
            given = tuple(ragged.rows_of(caller, next(names, ""), each) for each in given)
            options = {name: ragged.rows_of(caller, name, each) for name, each in options.items()}
            options["lengths"] = ragged.lengths
        if "k" in places:
            k = k_of(caller, found("k", given, options, 1), sizes.most)
        sorter = sorter_for(sizes, caller, x, found("dim", given, options, -1), k)
        result = method(sorter, x, *given, **options)
        return _closed(result, ragged) if ragged is not None and gives_rows else result

    return call


class Sizes(Attribute):
    """Sorters of one family for any number of values, from a few networks.

    It has the methods of `Sorter`. A call with m values along the axis takes the network of the next larger
    size, with +∞ in the place of the other values, with which a value of +∞ ties. So all calls of one size
    share a network and its kernel. The sizes are 2^k and 3·2^k from 8 on, up to `most`. A steepness of None
    means this network's default, and a k may be larger than m.

    x may be a padded tensor with `lengths` or `mask`, or lists of different lengths:

    - a nested tensor of the jagged layout, with holes or without;
    - a `torch.nn.utils.rnn.PackedSequence`;
    - a pair of values and offsets, as nested tensors have them.

    For lists, leave `lengths` and `mask` out; arguments shaped like x may be lists of the same lengths too.
    Results shaped like x are lists again, without holes; P and selections are padded.

    Args:
        network: the family's name.
        most: the largest number of values; None: any.
        options: options of `nsc.compile`.

    >>> import nsc, torch
    >>> sorters = nsc.compile_sizes("bitonic")
    >>> sorters.sorter(100)
    SorterUpTo(bitonic_128: n=128, size=1792, depth=28)
    >>> sorters.sort(torch.tensor([3.0, 1.0, 2.0]), steepness=50.0).round()
    tensor([1., 2., 3.])
    """

    def __init__(self, network: str = "bitonic", most: int | None = None, **options: Unpack[Options]) -> None:
        if not is_family(network):
            known = ", ".join(FAMILIES)
            raise NetworkError(f"Sizes are of a family ({known}), got {network!r}: nsc.compile takes others")
        self.network = network
        self.most = None if most is None else integer("most", most, NetworkError)
        if self.most is not None and self.most < 1:
            raise NetworkError(f"{argument('most')} must be 1 or more, got {most}")
        if "select" in options:
            raise LoweringError("Sizes sort all values: leave select out")
        fixed = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        self._options = tuple(sorted(fixed.items()))

    def __repr__(self) -> str:
        return f"Sizes({self.network!r})" if self.most is None else f"Sizes({self.network!r}, {self.most})"

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
        return self._sorter(integer("m", m, OperandError))

    def _sorter(self, m: int) -> Sorter:
        size = _size_of(m, self.most)
        if size is None:
            values, most = count(m, "value"), "" if self.most is None else f"{self.most} "
            advice = f": make it with {argument('most', m)}" if m and self.most is not None else ""
            raise OperandError(f"{self!r} sorts 1 … {most}values, got {values}{advice}")
        return _sorter(self.network, size, self._options)

    sort = _as_given(Sorter.sort)
    __call__ = sort
    sort_with_permutation = _as_given(Sorter.sort_with_permutation)
    rank = _as_given(Sorter.rank)
    route = _padded(Sorter.route)
    topk = _padded(Sorter.topk)
    top_k_weights = _as_given(Sorter.top_k_weights)
    cross_entropy = _padded(Sorter.cross_entropy)
    binary_cross_entropy = _padded(Sorter.binary_cross_entropy)
    hard_sort = _as_given(Sorter.hard_sort)

    def loss(
        self,
        name: str,
        x: Rows,
        target: Target | Any | None = None,
        steepness: Any = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return a loss of P against a target, by its name; see `Sorter.loss`.

        Raises:
            OperandError: an unknown loss, or a target that does not fit.
        """
        if not is_name(name, LOSSES):
            raise OperandError(f"{self!r}.loss: no loss {name!r}; known: {', '.join(LOSSES)}")
        method: Callable[..., Tensor] = getattr(self, name)
        return method(x, target, steepness, **options)


class SorterUpTo(Sorter):
    """A Sorter that takes fewer values than its network has wires, with +∞ in the place of the others."""

    _takes_fewer = True


def wires_of(sorter: Sorter, m: int) -> int | None:
    """Return how many wires m values are arranged for; None: as many as the sorter has."""
    return sorter._operands.wires_for(m)


def _size_of(m: int, most: int | None) -> int | None:
    """Return the least size that holds m values, at most `most`; None: there is none, or no value."""
    if not 1 <= m <= (MAX_WIRES if most is None else most):
        return None
    size = next(size for size in _SIZES if size >= m)
    return size if most is None else min(size, most)


def sorter_for(operator: Sorter | Sizes, caller: str, x: Tensor, dim: int, k: int | None = None) -> Sorter:
    """Return the sorter for the values of x along an axis, at least k; one of Sizes takes fewer values too.

    Raises: the errors of a call, about x, its axis, and how many values Sizes sort.
    """
    if isinstance(operator, Sorter):
        return operator
    check_dense(caller, "x", x)
    axis = axis_of(caller, x, None, dim)
    m = x.shape[axis] if x.dim() else 1
    return operator._sorter(m if k is None or not m else max(m, k))


def most_of(operator: Sorter | Sizes) -> int | None:
    """Return how many values an operator sorts at most; None: any number."""
    return operator.n if isinstance(operator, Sorter) else operator.most


def serving(operator: AnyOperator, dtype: torch.dtype, device: torch.device) -> AnyOperator:
    """Return an operator, or sizes, of the same networks, as `nsc.api.serving` does."""
    if not isinstance(operator, Sizes):
        return api.serving(operator, dtype, device)
    one = operator._sorter(1)
    again = api.serving(one, dtype, device)
    if again is one:
        return operator
    options: dict[str, Any] = dict(operator._options)
    options.update(dtypes=tuple(sorted(again.kernel.reals)), targets=tuple(again.kernel.sources))
    return cast(AnyOperator, Sizes(operator.network, operator.most, **options))


@on_demand
@functools.lru_cache(_MOST_KEPT)
def _sorter(network: str, size: int, options: tuple[tuple[str, Any], ...]) -> Sorter:
    return SorterUpTo(compile(network, size, **dict(options)).kernel.files)


def _closed(result: Any, ragged: Ragged) -> Any:
    """Return a result with its rows, (batch, m), as the lists that were given."""
    if isinstance(result, Tensor):
        return ragged.closed(result) if result.dim() == 2 else result
    parts = [_closed(each, ragged) for each in result]
    return tuple(parts) if type(result) is tuple else type(result)(*parts)


def compile_sizes(network: str = "bitonic", most: int | None = None, **options: Unpack[Options]) -> Sizes:
    """Return sorters of one family for any number of values.

    A network is compiled when a call first needs its size.

    Args:
        network: the family's name.
        most: the largest number of values; None: any.
        options: options of `nsc.compile`, such as relaxation; not select.

    Raises:
        NetworkError: no such family, or fewer than 1 value.
        LoweringError: options that `nsc.compile` refuses.

    >>> import nsc, torch
    >>> lists = torch.nested.nested_tensor([torch.tensor([3.0, 1.0]), torch.tensor([5.0, 4.0, 6.0])],
    ...                                    layout=torch.jagged)
    >>> ranks = nsc.compile_sizes("bitonic").rank(lists, steepness=50.0)
    >>> [each.round().tolist() for each in ranks.unbind()]
    [[1.0, 0.0], [1.0, 0.0, 2.0]]
    """
    made = Sizes(network, most, **options)
    made.sorter(1)  # refuses wrong arguments here
    return made

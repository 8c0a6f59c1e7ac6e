"""The base of Sorter and Selector: facts of the network, and the way from a method to the kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from nsc.arguments import flag
from nsc.contract.manifest import NETWORK, PROOF
from nsc.contract.routings import ROUTINGS, Payload
from nsc.errors import OperandTypeError, PackageError, PropertyError
from nsc.operators.classes import classes_of
from nsc.operators.exact import Sorted, hard_sort
from nsc.operators.operands import Operands, Steepness, kept_or_new, tensor_of, unfolded
from nsc.operators.samples import AS_IT_IS, Arrangement, Lengths, Lists, Mask, arranged, last_of
from nsc.runtime.dispatch import relaxed
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed.call import NO_CLASSES, Call
from nsc.runtime.relaxed.kernel import Kernel, register_kernel

if TYPE_CHECKING:
    from nsc.compiler.network import Network
    from nsc.compiler.verify import Proof


class Attribute:
    """An object that becomes an attribute of the module that torch.fx traces, so that the graph finds it."""

    def __fx_create_arg__(self, tracer: Any) -> Any:
        """Return the attribute."""
        name = tracer.get_fresh_qualname("_operator")
        setattr(tracer.root, name, self)
        return tracer.create_node("get_attr", name, (), {})


class Packaged(Attribute):
    """An object made of a package's files; it pickles, copies and compares by them.

    Args:
        spec: a name that stands for the files' content.
        files: name to text.
    """

    def __init__(self, spec: str, files: Mapping[str, str]) -> None:
        self._spec = spec
        self._files = files

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._spec == other._spec

    def __hash__(self) -> int:
        return hash(self._spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self._files),)


class Operator(Packaged):
    """One compiled network: what Sorter and Selector share. Pickles, copies and compares by its package.

    >>> import nsc
    >>> op = nsc.compile("bitonic", 4)
    >>> op.name, op.n, op.default_steepness, op.proof.sentence()
    ('bitonic_4', 4, 6.0, 'sorts')
    """

    # Whether calls may have fewer values than the network has wires.
    _takes_fewer = False
    # Whether ranks count from the largest value, and the key in places where no entry takes part.
    _descends = False
    _absent = math.inf

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files: name to text, the manifest among them.

        Raises:
            PackageError: files that no `nsc compile` of this version wrote.
        """
        self._kernel = register_kernel(files)
        super().__init__(self._kernel.spec, self._kernel.files)
        self._operands = Operands(self._kernel, self.default_steepness, self._takes_fewer)

    def __reduce__(self) -> tuple[Any, ...]:
        return _operator_of, (type(self), dict(self._files), self._kernel.is_specialised)

    @property
    def name(self) -> str:
        """The package's name."""
        return self._kernel.name

    @property
    def n(self) -> int:
        """Number of wires: how many values are sorted."""
        return self._kernel.n

    @property
    def size(self) -> int:
        """Number of comparators."""
        return self._kernel.size

    @property
    def depth(self) -> int:
        """Number of layers."""
        return self._kernel.depth

    @property
    def default_steepness(self) -> float:
        """2 × depth, the paper's choice (section 5.1); 2 for the network of one wire."""
        return 2.0 * max(1, self.depth)

    @property
    def kernel(self) -> Kernel:
        """The package behind the operator: its files, and its library once built."""
        return self._kernel

    @functools.cached_property
    def network(self) -> Network:
        """The network that was compiled, read from the package when first used.

        Raises:
            PackageError: it is not the manifest's network, so the package was edited.
        """
        from nsc.compiler.formats import parse_network  # a package is loaded without the compiler

        network = parse_network(self._kernel.files[NETWORK], format="nsc")
        if network.digest != self._kernel.manifest.network:
            raise PackageError(
                f"{self.name}: {NETWORK} is not the manifest's network: compile the package again"
            )
        return network

    @functools.cached_property
    def proof(self) -> Proof:
        """The proof that the package came with, read from it when first used.

        Raises:
            PackageError: it does not prove that `network` does the operator's task, so it was edited.
        """
        from nsc.compiler.verify import Proof, check_proof, parse  # a package is loaded without the compiler

        outputs = self._kernel.outputs
        wires, ranks = (range(self.n),) * 2 if outputs is None else (outputs.wires, outputs.ranks)
        try:
            proof = check_proof(self.network, Proof.from_json(self._kernel.files[PROOF]))
        except PropertyError as error:
            raise PackageError(f"{self.name}: {PROOF}: {error}") from None
        claim = parse(proof.property, self.n)
        if claim.presorted or claim.ranks != dict(zip(wires, ranks, strict=True)):
            raise PackageError(f"{self.name}: {PROOF} is of {proof.property}: compile the package again")
        return proof

    def _run(
        self,
        method: str,
        x: Tensor,
        arrangement: Arrangement,
        steepness: Steepness,
        routing: str,
        payload: Tensor | None = None,
        of_largest: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Check, fold the leading shape into a batch, run, unfold; return the values and the routed tensor.

        A payload is as a kernel takes it, but with the leading axes of x, or none if all samples share it.
        Straight through, the first of equal values has the lowest rank, or the highest rank if `of_largest`;
        the values beside columns stay soft.
        """
        is_straight = arrangement.is_straight
        lists, outputs = arrangement.lists, self._kernel.outputs
        if arrangement is not AS_IT_IS:
            x = arrangement.keys(x, self._absent)
        dtype = x.dtype
        if payload is not None and payload.dtype.is_floating_point:
            dtype = torch.promote_types(dtype, payload.dtype)
        way = way_of(x, payload, tensor_of(steepness))
        keys = self._operands.keys(method, x, dtype)
        slopes = self._operands.steepness(method, steepness, keys, way, x)
        folded = None if payload is None else self._operands.payload(method, payload, routing, x, keys)
        classes = NO_CLASSES
        if lists is not None and outputs is None and way is PLAIN and not keys.is_cuda:
            classes = classes_of(self._kernel, lists.counts.reshape(-1), routing)
        values, routed = relaxed.relax(way, Call(keys, slopes, folded, routing, self._kernel, classes))
        if keys is not x:
            values = unfolded(values, x.shape, x.dtype)
        if routed is None or routing == "none":
            routed = values
        elif keys is not x:
            routed = unfolded(routed, (*x.shape[:-1], *routed.shape[1:]), dtype)
        if lists is None and outputs is None and not is_straight and routing != "rows":
            return values, routed
        wires = payload if routing == "rows" else None
        if outputs is not None:
            wires = kept_or_new(tensor_of_numbers, x, outputs.wires)
        if wires is not None:
            values = _taken(values, wires)
            if routing == "route":
                routed = routed.index_select(-2, wires)
        if routing == "rows":
            routed = routed.transpose(-1, -2)
        if is_straight:
            wanted = wires if outputs is None else kept_or_new(tensor_of_numbers, x, outputs.places)
            if of_largest:
                exact, places = _sorted_backwards(x, lists)
            else:
                exact, places = x.sort(stable=True, dim=-1, descending=self._descends)
            if wanted is not None:
                exact, places = _taken(exact, wanted), _taken(places, wanted)
            if ROUTINGS[routing].payload is Payload.COLUMNS:
                assert payload is not None
                routed = straight(routed, _exact_columns(payload, routed, places, routing))
            else:
                values = straight(values, exact)
                routed = values if routing == "none" else straight(routed, _unit_rows(places, self.n))
        if lists is not None and routing == "permutation" and (is_straight or not classes):
            routed = lists.of_rows(routed)
        return values, routed

    def _is_there(self, arrangement: Arrangement) -> Tensor | None:
        """Return which of some ranks each sample has, (…, k); None: the results have all ranks."""
        return None

    def _hard(
        self,
        method: str,
        x: Tensor,
        dim: int,
        values_only: bool,
        descending: bool = False,
        index_dtype: torch.dtype = torch.int64,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
    ) -> Sorted | Tensor:
        """Sort or select exactly; arguments as `Sorter.hard_sort` has them."""
        arrangement = arranged(self._operands, method, x, dim, lengths, mask, fill)
        descending = flag("descending", descending, OperandTypeError)
        values_only = flag("values_only", values_only, OperandTypeError)
        caller = f"{self.name}.{method}"
        if arrangement.lists is None:
            return hard_sort(caller, self._kernel, x, dim, descending, values_only, index_dtype)
        keys = arrangement.at_end(x, last_of(x.dtype, descending or self._descends))
        values, places = hard_sort(caller, self._kernel, keys, -1, descending, False, index_dtype)
        is_there = self._is_there(arrangement)
        found = arrangement.of_ranks(values, is_there=is_there)
        if values_only:
            return found
        places = arrangement.of_places(places)
        return Sorted(found, arrangement._replace(fill=-1).of_ranks(places, is_there=is_there))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: n={self.n}, size={self.size}, depth={self.depth})"

    def _repr_html_(self) -> str:
        """Return a card of the operator, its proof and its network, which a notebook shows."""
        from nsc.compiler.cards import card  # a package is loaded without the compiler
        from nsc.compiler.diagram import notebook_svg
        from nsc.compiler.relaxations import Relaxation

        outputs, manifest = self._kernel.outputs, self._kernel.manifest
        relaxation = Relaxation(manifest.sigmoid, manifest.art_lambda, manifest.error_free)
        return card(
            repr(self),
            {
                "network": self.network.counts,
                "results": "all ranks" if outputs is None else f"ranks {', '.join(map(str, outputs.ranks))}",
                "relaxation": relaxation.describe(),
                "default steepness": f"{self.default_steepness:g}",
                "targets": ", ".join(self._kernel.sources),
                "proof": f"{self.proof.sentence()}: {self.proof.detail}",
            },
            notebook_svg(self.network) or "",
        )


def _operator_of(kind: type[Operator], files: Mapping[str, str], is_specialised: bool) -> Operator:
    """Return an operator as it was in another process."""
    operator = kind(files)
    if is_specialised:
        operator.kernel.specialise()
    return operator


def _sorted_backwards(x: Tensor, lists: Lists | None) -> tuple[Tensor, Tensor]:
    """Sort keys (…, n), the entries that take part in front; of equal values the last comes first."""
    places = torch.arange(x.shape[-1], device=x.device)
    counts = len(places) if lists is None else lists.counts.unsqueeze(-1)
    turned = ((counts - 1 - places) % len(places)).expand(x.shape)
    exact, found = x.gather(-1, turned).sort(stable=True, dim=-1)
    return exact, turned.gather(-1, found)


def straight(soft: Tensor, exact: Tensor) -> Tensor:
    """Return exact numbers with the derivatives of soft ones; a soft number that is not finite is returned.

    Source: Bengio, Leonard & Courville 2013, for the estimator.
    """
    passed = exact.detach().to(soft.dtype) + (soft - soft.detach())
    return torch.where(soft.isfinite(), passed, soft)


def _exact_columns(payload: Tensor, soft: Tensor, places: Tensor, routing: str) -> Tensor:
    """Return a payload, exactly routed, in the shape of the soft columns."""
    index = places.unsqueeze(-1).expand(*places.shape, payload.shape[-1])
    if routing == "route":
        return payload.gather(-2, index)
    return torch.zeros_like(soft).scatter(-2, index, payload.expand(soft.shape))


def _unit_rows(places: Tensor, n: int) -> Tensor:
    """Return rows (…, k, n) of a permutation matrix, for places (…, k): 1 at the place, else 0."""
    return places.unsqueeze(-1) == torch.arange(n, device=places.device)


def _taken(values: Tensor, ranks: Tensor) -> Tensor:
    """Return the values of ranks (k,), or of ranks (…, k) that differ by sample."""
    return values.index_select(-1, ranks) if ranks.dim() == 1 else values.gather(-1, ranks)


def tensor_of_numbers(device: torch.device, values: tuple[int, ...]) -> Tensor:
    """Return whole numbers as a tensor, for `kept_or_new`."""
    return torch.tensor(values, device=device)


AnyOperator = TypeVar("AnyOperator", bound=Operator)


def on_demand(make: Callable[..., AnyOperator]) -> Callable[..., AnyOperator]:
    """Return a function that makes an operator, and that torch.compile can trace.

    torch.compile cannot trace the compiler of networks. So the operator becomes an attribute while a call is
    traced, and the program reads the attribute.

    Args:
        make: makes an operator, the same for the same arguments, which become constants of the program.
    """
    kept = SimpleNamespace()

    def keep(*arguments: object) -> str:
        operator = make(*arguments)
        setattr(kept, operator.kernel.spec, operator)
        return operator.kernel.spec

    # All that torch.compiler.assume_constant_result does, apart from 0.7 s to load torch._dynamo.
    keep._dynamo_marked_constant = True  # type: ignore[attr-defined]

    @functools.wraps(make)
    def find(*arguments: object) -> AnyOperator:
        if not torch.compiler.is_compiling():
            return make(*arguments)
        return getattr(kept, keep(*arguments))  # type: ignore[no-any-return]

    return find

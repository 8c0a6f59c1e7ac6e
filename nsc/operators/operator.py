"""What Sorter and Selector share: facts of the network, and the way from a method to the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from nsc.arguments import flag, real
from nsc.contract.manifest import NETWORK, PROOF
from nsc.errors import OperandTypeError, PackageError, PropertyError
from nsc.operators.arrangement import AS_IT_IS, Arrangement, arrangement_of
from nsc.operators.classes import classes_of
from nsc.operators.exact import Sorted, hard_sort
from nsc.operators.lists import Lengths, Lists, Mask
from nsc.operators.operands import Operands, Steepness, cast, tensor_of, unfolded
from nsc.operators.packaged import Packaged
from nsc.runtime.dispatch import entries
from nsc.runtime.dispatch.by_class import Classes
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed.kernel import Kernel, register_kernel

if TYPE_CHECKING:
    from nsc.compiler.network import Network
    from nsc.compiler.verify import Proof


class Operator(Packaged):
    """One compiled network: what Sorter and Selector share. Pickles, copies and compares by its package.

    >>> import nsc
    >>> op = nsc.compile("bitonic", 4)
    >>> op.name, op.n, op.default_steepness, op.proof.sentence()
    ('bitonic_4', 4, 6.0, 'sorts')
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files: name to text, the manifest among them.

        Raises:
            PackageError: files that no `nsc compile` of this version wrote.
        """
        self._kernel = register_kernel(files)
        super().__init__(self._kernel.spec, self._kernel.files)
        self._operands = Operands(self._kernel, self.default_steepness)

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

    @cached_property
    def network(self) -> Network:
        """The network that was compiled, read from the package when first used.

        Raises:
            PackageError: it is not the one of the manifest, which was edited.
        """
        from nsc.compiler.formats import parse_network  # a package is loaded without the compiler

        network = parse_network(self._kernel.files[NETWORK], format="nsc")
        if network.digest != self._kernel.manifest.network:
            raise PackageError(
                f"{self.name}: {NETWORK} is not the manifest's network: compile the package again"
            )
        return network

    @cached_property
    def proof(self) -> Proof:
        """The proof that the package came with, read from it when first used.

        Raises:
            PackageError: it is not a proof that `network` does what the operator is for, so it was edited.
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

    def _arranged(
        self, method: str, x: Tensor, dim: int, lengths: Lengths = None, mask: Mask = None, fill: float = 0
    ) -> Arrangement:
        """Check x, and return how the tensors of a call are arranged."""
        axis = self._operands.axis(method, x, dim)
        fill = self._fill(method, fill)
        if axis is None and lengths is None and mask is None:
            return AS_IT_IS
        return arrangement_of(f"{self.name}.{method}", x, axis, lengths, mask, fill)

    def _fill(self, method: str, fill: float) -> float:
        """Return what stands in results where no entry takes part, checked."""
        if type(fill) is not int and type(fill) is not float:
            number = real(fill)
            if number is None:
                raise OperandTypeError(f"{self.name}.{method}: fill must be a number, got {fill!r}")
            return number
        return fill

    def _is_straight(self, straight_through: object) -> bool:
        return straight_through is not False and flag("straight_through", straight_through, OperandTypeError)

    def _run(
        self,
        method: str,
        x: Tensor,
        steepness: Steepness,
        payload: Tensor | None,
        routing: str,
        is_shared: bool = False,
        lists: Lists | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Check, fold the leading shape into a batch, run, unfold.

        Args:
            method: the method that was called, for messages.
            x: as users pass it, a tensor; its sorted axis at the end.
            steepness: as users pass it.
            payload: its leading axes are those of x; it has none if all samples share it.
            routing: a key of ROUTINGS.
            is_shared: whether all samples share the payload.
            lists: which entries take part, in front of the others; None: all. P is 0 in the rows of ranks
                that there are not, and in other columns.

        Returns:
            The values, and what is routed; the values twice if nothing is.
        """
        dtype = x.dtype
        if payload is not None and payload.dtype.is_floating_point:
            dtype = torch.promote_types(dtype, payload.dtype)
        way = way_of(x, payload, tensor_of(steepness))
        keys = self._operands.keys(method, x, dtype)
        weights = self._operands.steepness(method, steepness, keys, way, x)
        if payload is not None:
            self._operands.check_device(method, x, payload)
            if payload.dtype.is_floating_point:
                payload = cast(payload, keys.dtype)
            batch = keys.shape[0]
            if is_shared:
                payload = payload.expand(batch, *payload.shape)
            elif x.dim() != 2:
                payload = payload.reshape(batch, *payload.shape[x.dim() - 1 :])
        classes: Classes = ()
        if lists is not None and way is PLAIN and not keys.is_cuda:
            classes = classes_of(self._kernel, lists.counts.reshape(-1), routing)
        values, routed = entries.relax(self._kernel, way, keys, weights, payload, routing, classes)
        if routed is None:
            values = routed = unfolded(values, x.shape, x.dtype)
        elif keys is not x:
            values = unfolded(values, x.shape, x.dtype)
            routed = unfolded(routed, (*x.shape[:-1], *routed.shape[1:]), dtype)
        if lists is not None and not classes and routing == "permutation":
            routed = lists.of_rows(routed)
        return values, routed

    def _exact(
        self,
        method: str,
        x: Tensor,
        dim: int,
        descending: bool,
        values_only: bool,
        index_dtype: torch.dtype,
    ) -> Sorted | Tensor:
        """Check, and sort or select exactly; arguments as `Sorter.hard_sort` has them."""
        self._operands.check_dense(method, "x", x)
        descending = flag("descending", descending, OperandTypeError)
        values_only = flag("values_only", values_only, OperandTypeError)
        caller = f"{self.name}.{method}"
        return hard_sort(caller, self._kernel, x, dim, descending, values_only, index_dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: n={self.n}, size={self.size}, depth={self.depth})"

    def _repr_html_(self) -> str:
        """Return what the operator is, with its proof and its network, which a notebook shows."""
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

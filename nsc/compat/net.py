"""The base of the modules of diffsort and difftopk: a network by its name, a device, a relaxation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from nsc.arguments import is_name
from nsc.compat.functional import operator_of, real_of
from nsc.compat.networks import Layer, Layers, network_of
from nsc.compiler.network import Network, check_wires
from nsc.errors import LoweringError, OperandError, VerificationError
from nsc.operators.operands import check_dense
from nsc.operators.operator import Operator


class Net(torch.nn.Module):
    """A network on `size` wires, that sorts along axis 1, or selects the `top` largest.

    Args:
        networks: by a name, the function from a size to a network.
        package: the package that has these networks, for messages.
        top: how many of the largest values are selected; None: all are sorted.
        sorting_network_type, size, device, steepness, art_lambda, interpolation_type, distribution: as in
            `nsc.compat.DiffSortNet`.
    """

    def __init__(
        self,
        networks: Mapping[str, Callable[[int], Network]],
        package: str,
        top: int | None,
        sorting_network_type: str,
        size: int,
        device: str | torch.device,
        steepness: float | Tensor,
        art_lambda: float,
        interpolation_type: str | None,
        distribution: str | None,
    ) -> None:
        super().__init__()
        if interpolation_type is not None:
            if distribution not in (None, "cauchy", interpolation_type):
                raise LoweringError(
                    f"distribution={distribution!r} and interpolation_type={interpolation_type!r} mean "
                    "the same and disagree: leave interpolation_type out"
                )
            distribution = interpolation_type
        if not is_name(sorting_network_type, networks):
            raise LoweringError(
                f"sorting_network_type must be one of {', '.join(networks)}, got {sorting_network_type!r}"
            )
        self._device = _device(device)
        self.sorting_network_type = sorting_network_type
        self.size = check_wires(size)
        self.steepness = steepness
        self.art_lambda = art_lambda
        self.distribution = distribution
        self._top = top
        self._network = networks[sorting_network_type](self.size)
        self._name: str | None = f"{sorting_network_type}_{self.size}"
        # Refuses a bad size, distribution or art_lambda here; builds nothing yet.
        try:
            operator_of(self._network, self._name, distribution, art_lambda, "float32", self._device, top)
        except VerificationError as error:
            does = (
                f"does not sort {self.size} values"
                if top is None
                else f"does not select the {top} largest of {self.size} values"
            )
            select = "" if top is None else f", select=nsc.top_k({top})"
            raise VerificationError(
                f"{type(self).__name__}: {package}'s own {sorting_network_type} network {does}; "
                f'nsc.compile("{sorting_network_type}", {self.size}{select}) does',
                error.counterexample,
                error.failing_input,
            ) from None

    @property
    def sorting_network(self) -> Sequence[Layer]:
        """The network as layers of matrices, on the module's device; see `nsc.compat.networks`.

        A program may assign such layers to it, for example after moving each matrix to a device.
        """
        return Layers(self._network, self._device)

    @sorting_network.setter
    def sorting_network(self, layers: Sequence[Layer]) -> None:
        network = network_of(layers)
        if network != self._network:
            self._network, self._name = network, None
        for layer in layers[:1]:
            self._device = _device(layer[0].device if isinstance(layer[0], Tensor) else "cpu")

    def _operator(self, vectors: Tensor) -> Operator:
        """Return the operator for a call's vectors, or raise the error that says which the module takes."""
        own = type(self).__name__
        check_dense(own, "vectors", vectors)
        if vectors.dim() != 2 or vectors.shape[1] != self.size:
            does = "sorts" if self._top is None else "selects from"
            raise OperandError(f"{own} {does} (batch, {self.size}) along axis 1, got {tuple(vectors.shape)}")
        if vectors.is_cuda and self._device != "cuda":
            raise OperandError(
                f"{own}: vectors are on {vectors.device}, the network is for the CPU: add device='cuda'"
            )
        return operator_of(
            self._network,
            self._name,
            self.distribution,
            self.art_lambda,
            real_of(vectors),
            vectors.device.type,
            self._top,
        )


def _device(device: object) -> str:
    """Return the type of a device; raise LoweringError if it is neither cpu nor cuda."""
    is_written = isinstance(device, str | torch.device)  # torch takes 1.5 for a device too
    try:
        kind = torch.device(device).type if is_written else None  # type: ignore[call-overload]
    except RuntimeError:
        kind = None
    if kind not in ("cpu", "cuda"):
        raise LoweringError(f"device must be 'cpu' or 'cuda', got {device!r}")
    return str(kind)

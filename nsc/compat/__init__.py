"""diffsort's interface over compiled kernels, so that a user changes one import.

from nsc.compat import DiffSortNet    # was: from diffsort import DiffSortNet
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsc.arguments import is_name
from nsc.compiler.network import check_wires
from nsc.errors import LoweringError, OperandError, VerificationError, torch_needed

with torch_needed("nsc.compat"):
    import torch
    from torch import Tensor

    from nsc.compat import functional, networks
    from nsc.compat.functional import ShapeError, operator_of, sort, sorted_by
    from nsc.compat.networks import (
        NETWORKS,
        Layer,
        Layers,
        UnknownNetworkError,
        bitonic_network,
        get_sorting_network,
        network_of,
        odd_even_network,
    )
    from nsc.operators.operands import check_dense

if TYPE_CHECKING:
    from nsc.compiler.network import Network

__all__ = [
    "DiffSortNet",
    "bitonic_network",
    "functional",
    "get_sorting_network",
    "networks",
    "odd_even_network",
    "sort",
]


class DiffSortNet(torch.nn.Module):
    """diffsort.DiffSortNet: sort along axis 1 and return the relaxed permutation matrix.

    Arguments, defaults and the convention `sorted = x @ P` are those of diffsort 0.2.0: P here is
    the transpose of what the other operators of nsc return. As there, `steepness`, `art_lambda`,
    `distribution` and `sorting_network` are attributes that may be set at any time; a new combination is
    built at its first call.

    Args:
        sorting_network_type: "odd_even" or "bitonic".
        size: number of values to sort.
        device: "cpu", or "cuda" for tensors on either.
        steepness: 1 / unit of x; with logistic_phi in units of x^(λ − 1). A tensor of shape (), (1,) or
            (batch, 1) is taken too; a negative one sorts descending.
        art_lambda: strength of the activation replacement trick, used by "logistic_phi" alone.
        interpolation_type: deprecated name of `distribution`.
        distribution: logistic, logistic_phi, gaussian, reciprocal, cauchy or optimal.

    Raises:
        LoweringError: an unknown network (which is a NotImplementedError too), distribution or device, or two
            distributions.
        NetworkError: no size that there is a network for.
        VerificationError: a size for which diffsort's own network does not sort, such as bitonic 22, where
            `nsc.compile("bitonic", 22)` does.

    >>> values, P = DiffSortNet("bitonic", 4, steepness=50.0)(torch.tensor([[3.0, 1.0, 2.0, 0.0]]))
    >>> values.round()
    tensor([[0., 1., 2., 3.]])
    """

    def __init__(
        self,
        sorting_network_type: str,
        size: int,
        device: str | torch.device = "cpu",
        steepness: float | Tensor = 10.0,
        art_lambda: float = 0.25,
        interpolation_type: str | None = None,
        distribution: str | None = "cauchy",
    ) -> None:
        super().__init__()
        if interpolation_type is not None:
            if distribution not in (None, "cauchy", interpolation_type):
                raise LoweringError(
                    f"distribution={distribution!r} and interpolation_type={interpolation_type!r} mean "
                    "the same and disagree: leave interpolation_type out"
                )
            distribution = interpolation_type
        if not is_name(sorting_network_type, NETWORKS):
            raise UnknownNetworkError(
                f"sorting_network_type must be one of {', '.join(NETWORKS)}, got {sorting_network_type!r}"
            )
        self._device = _device(device)
        self.sorting_network_type = sorting_network_type
        self.size = check_wires(size)
        self.steepness = steepness
        self.art_lambda = art_lambda
        self.distribution = distribution
        self._network = NETWORKS[sorting_network_type](self.size)
        self._name: str | None = f"{sorting_network_type}_{self.size}"
        # Refuses a bad size, distribution or art_lambda here; builds nothing yet.
        try:
            operator_of(self._network, self._name, distribution, art_lambda, "float32", self._device)  # type: ignore[arg-type]
        except VerificationError as error:
            raise VerificationError(
                f"DiffSortNet: diffsort's own {sorting_network_type} network does not sort {self.size} "
                f'values; nsc.compile("{sorting_network_type}", {self.size}) does',
                error.counterexample,
                error.failing_input,
            ) from None

    @property
    def sorting_network(self) -> Sequence[Layer]:
        """The network as layers of matrices, on the module's device; see `nsc.compat.networks`.

        It may be set to such layers, as programs do that move each matrix to a device.
        """
        return Layers(self._network, self._device)

    @sorting_network.setter
    def sorting_network(self, layers: Sequence[Layer]) -> None:
        network: Network = network_of(layers)
        if network != self._network:
            self._network, self._name = network, None
        for layer in layers[:1]:
            self._device = _device(layer[0].device if isinstance(layer[0], Tensor) else "cpu")

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return sorted values (batch, size) and P (batch, size, size) with sorted = vectors @ P.

        Raises:
            OperandError: vectors that are not (batch, size), which is an AssertionError too.
            OperandTypeError: vectors that are no tensor.
        """
        check_dense("DiffSortNet", "vectors", vectors)
        if vectors.dim() != 2 or vectors.shape[1] != self.size:
            raise ShapeError(
                f"DiffSortNet sorts (batch, {self.size}) along axis 1, got {tuple(vectors.shape)}"
            )
        if vectors.is_cuda and self._device != "cuda":
            raise OperandError(
                f"DiffSortNet: vectors are on {vectors.device}, the network is for the CPU: add device='cuda'"
            )
        return sorted_by(
            self._network,
            self._name,
            vectors,
            self.steepness,
            self.art_lambda,
            self.distribution,  # type: ignore[arg-type]
        )


def _device(device: object) -> str:
    """Return the type of a device.

    Raises:
        LoweringError: a device that is neither of the two.
    """
    is_written = isinstance(device, str | torch.device)  # torch takes 1.5 for a device too
    try:
        kind = torch.device(device).type if is_written else None  # type: ignore[call-overload]
    except RuntimeError:
        kind = None
    if kind not in ("cpu", "cuda"):
        raise LoweringError(f"device must be 'cpu' or 'cuda', got {device!r}")
    return str(kind)

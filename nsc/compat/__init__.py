"""diffsort's interface over compiled kernels, so that a user changes one import.

from nsc.compat import DiffSortNet    # was: from diffsort import DiffSortNet

`nsc.compat.difftopk` and `nsc.compat.torchsort` stand in place of these packages.
"""

from __future__ import annotations

from nsc.errors import torch_needed

with torch_needed("nsc.compat"):
    import torch
    from torch import Tensor

    from nsc.compat import functional, networks
    from nsc.compat.functional import sort, sorted_by
    from nsc.compat.net import Net
    from nsc.compat.networks import NETWORKS, bitonic_network, get_sorting_network, odd_even_network

__all__ = [
    "DiffSortNet",
    "bitonic_network",
    "functional",
    "get_sorting_network",
    "networks",
    "odd_even_network",
    "sort",
]


class DiffSortNet(Net):
    """diffsort.DiffSortNet: sort along axis 1 and return the relaxed permutation matrix.

    Arguments, defaults and the convention `sorted = x @ P` are diffsort's, version 0.2.0: P here is the
    transpose of the P that nsc's other operators return. As in diffsort, `steepness`, `art_lambda`,
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
        LoweringError: an unknown network, distribution or device, or two distributions.
        NetworkError: a size that no network has.
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
        relaxed = (steepness, art_lambda, interpolation_type, distribution)
        super().__init__(NETWORKS, "diffsort", None, sorting_network_type, size, device, *relaxed)

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return sorted values (batch, size) and P (batch, size, size) with sorted = vectors @ P.

        Raises:
            OperandError: vectors that are not (batch, size).
            OperandTypeError: vectors that are no tensor.
        """
        return sorted_by(self._operator(vectors), vectors, self.steepness)

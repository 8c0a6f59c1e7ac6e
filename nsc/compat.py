"""diffsort's interface over compiled kernels, so that a user changes one import.

from nsc.compat import DiffSortNet    # was: from diffsort import DiffSortNet
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from nsc.arguments import is_name
from nsc.compiler.families import bitonic, odd_even
from nsc.compiler.network import Network, check_wires
from nsc.compiler.relaxed.relaxations import Relaxation
from nsc.errors import LoweringError, OperandError, VerificationError, torch_needed

with torch_needed("nsc.compat"):
    import torch
    from torch import Tensor

    from nsc.api import compile
    from nsc.operators.on_demand import on_demand
    from nsc.operators.operands import check_dense
    from nsc.operators.sorter import Sorter

# diffsort's name of a distribution to nsc's sigmoid, and whether `art_lambda` applies to it.
DISTRIBUTIONS: dict[str, tuple[str, bool]] = {
    "logistic": ("logistic", False),
    "logistic_phi": ("logistic", True),
    "gaussian": ("gaussian", False),
    "reciprocal": ("reciprocal", False),
    "cauchy": ("cauchy", False),
    "optimal": ("optimal", False),
}


def diffsorts_bitonic(n: int) -> Network:
    """Return diffsort's bitonic network: that of the next power of two without its first wires.

    It does not sort for some n: 22, 38, 42 … 46, 54 are the first.
    """
    whole = bitonic(1 << (n - 1).bit_length())
    layers = (layer - (whole.n - n) for layer in whole.layers())
    return Network.from_layers(n, [layer[(layer >= 0).all(axis=1)] for layer in layers])


NETWORKS: dict[str, Callable[[int], Network]] = {"odd_even": odd_even, "bitonic": diffsorts_bitonic}


class DiffSortNet(torch.nn.Module):
    """diffsort.DiffSortNet: sort along axis 1 and return the relaxed permutation matrix.

    Arguments, defaults and the convention `sorted = x @ P` are those of diffsort 0.2.0: P here is
    the transpose of what the other operators of nsc return. As there, `steepness`, `art_lambda` and
    `distribution` are attributes that may be set at any time; a new combination is built at its first call.

    Args:
        sorting_network_type: "odd_even" or "bitonic".
        size: number of values to sort.
        device: "cpu", or "cuda" for tensors on either.
        steepness: 1 / unit of x; with logistic_phi in units of x^(λ − 1).
        art_lambda: strength of the activation replacement trick, used by "logistic_phi" alone.
        interpolation_type: deprecated name of `distribution`.
        distribution: logistic, logistic_phi, gaussian, reciprocal, cauchy or optimal.

    Raises:
        LoweringError: an unknown network, distribution or device, or two distributions.
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
        device: str = "cpu",
        steepness: float = 10.0,
        art_lambda: float = 0.25,
        interpolation_type: str | None = None,
        distribution: str = "cauchy",
    ) -> None:
        super().__init__()
        if interpolation_type is not None:
            if distribution not in ("cauchy", interpolation_type):
                raise LoweringError(
                    f"distribution={distribution!r} and interpolation_type={interpolation_type!r} mean "
                    "the same and disagree: leave interpolation_type out"
                )
            distribution = interpolation_type
        if not is_name(sorting_network_type, NETWORKS):
            raise LoweringError(
                f"sorting_network_type must be one of {', '.join(NETWORKS)}, got {sorting_network_type!r}"
            )
        targets = _targets(device)
        self.sorting_network_type = sorting_network_type
        self.size = check_wires(size)
        self.steepness = steepness
        self.art_lambda = art_lambda
        self.distribution = distribution
        self._network = sorting_network_type, self.size
        self._targets = targets
        # Refuses a bad size, distribution or art_lambda here; builds nothing yet.
        try:
            self._operator("float32")
        except VerificationError as error:
            raise VerificationError(
                f"DiffSortNet: diffsort's own {sorting_network_type} network does not sort {self.size} "
                f'values; nsc.compile("{sorting_network_type}", {self.size}) does',
                error.counterexample,
                error.failing_input,
            ) from None

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return sorted values (batch, size) and P (batch, size, size) with sorted = vectors @ P.

        Raises:
            OperandError: vectors that are not (batch, size).
            OperandTypeError: vectors that are no tensor.
        """
        check_dense("DiffSortNet", "vectors", vectors)
        if vectors.dim() != 2 or vectors.shape[1] != self.size:
            raise OperandError(
                f"DiffSortNet sorts (batch, {self.size}) along axis 1, got {tuple(vectors.shape)}"
            )
        operator = self._operator("float64" if vectors.dtype == torch.float64 else "float32")
        values, permutation = operator.sort_with_permutation(vectors, self.steepness)
        return values, permutation.transpose(-1, -2)

    def _operator(self, real: str) -> Sorter:
        """Return the operator for an arithmetic type, of the attributes as they are now."""
        if not is_name(self.distribution, DISTRIBUTIONS):
            raise LoweringError(
                f"distribution must be one of {', '.join(DISTRIBUTIONS)}, got {self.distribution!r}"
            )
        sigmoid, has_art = DISTRIBUTIONS[self.distribution]
        return _operator(*self._network, sigmoid, self.art_lambda if has_art else 0.0, real, self._targets)


def _targets(device: object) -> tuple[str, ...]:
    """Return the targets to compile for.

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
    return ("cpu", "cuda") if kind == "cuda" else ("cpu",)


@on_demand
def _operator(
    network: str, size: int, sigmoid: str, art_lambda: float, real: str, targets: tuple[str, ...]
) -> Sorter:
    return _compiled(network, size, Relaxation(sigmoid, art_lambda), real, targets)


@functools.cache
def _compiled(network: str, size: int, relaxation: Relaxation, real: str, targets: tuple[str, ...]) -> Sorter:
    return compile(
        NETWORKS[network](size),
        relaxation=relaxation,
        dtypes=(real,),
        targets=targets,
        name=f"{network}_{size}",
    )

"""difftopk's modules over compiled kernels, so that a user changes one import.

from nsc.compat.difftopk import TopKCrossEntropyLoss    # was: from difftopk import TopKCrossEntropyLoss
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from nsc.arguments import flag, integer, is_name
from nsc.compat.functional import signed
from nsc.compat.net import Net
from nsc.compat.networks import NETWORKS
from nsc.compiler.network import Network
from nsc.errors import LoweringError, OperandError, OperandTypeError
from nsc.nn.top_k import compared_of, losses_of, positive_of, weights_of
from nsc.operators.operands import check_dense
from nsc.operators.samples import by_samples
from nsc.operators.selector import Selector
from nsc.operators.sharding import Axes
from nsc.operators.targets import reduced
from nsc.wording import count

__all__ = ["DiffTopkNet", "TopKCrossEntropyLoss"]

# difftopk's networks of dense matrices (False), and of sparse ones (True).
SPARSE = {False: ("bitonic", "odd_even"), True: ("bitonic", "splitter_selection")}
# A method's network, and whether its matrices are sparse.
METHODS = {
    "bitonic": ("bitonic", True),
    "splitter_selection": ("splitter_selection", True),
    "bitonic__non_sparse": ("bitonic", False),
    "odd_even": ("odd_even", False),
}
# difftopk's names of the ways to compute the term of the top 1, to `nsc.nn.TopKCrossEntropy`'s names.
TOP1_MODES = {"sm": "softmax", "smce": "cross_entropy", "sort": "network"}


def splitter_selection(k: int, n: int) -> Network:
    """Return difftopk's network of splitter cascades: its last k wires carry the k largest values.

    A cascade is a butterfly: it compares places at distances of …, 4, 2, 1. After it, a place whose number
    has b ones in binary has at least 2^b - 1 values above it. Places with equally many values above them are
    split again, until none of the k ranks has two places. The first place is the last wire.

    Source: Petersen et al., Differentiable Top-k Classification Learning, ICML 2022, section 3.
    """
    above = [0] * n  # values that are known to be above the value at a place
    free = [0] * n  # the first layer without a comparator at a place
    layers: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    settled, is_done = 0, False
    while not is_done:
        is_done = True
        for rank in reversed(range(settled, min(k, n))):
            places = [place for place in range(n) if above[place] == rank]
            if len(places) < 2:
                continue
            is_done = False
            start, depth = max(free[place] for place in places), (len(places) - 1).bit_length()
            for layer in range(depth):
                stride = 1 << (depth - 1 - layer)
                layers[start + layer] += [
                    (n - 1 - places[i + stride], n - 1 - places[i])
                    for i in range(len(places) - stride)
                    if not i & stride
                ]
            for i, place in enumerate(places):
                above[place] += (1 << i.bit_count()) - 1
                free[place] = start + depth
        settled += 1
    return Network.from_layers(n, [layers[layer] for layer in range(len(layers))])


class DiffTopkNet(Net):
    """difftopk.DiffTopkNet: the relaxed attributions of the k largest values along axis 1.

    Arguments, defaults and results are difftopk's, version 0.2.0: a call returns None and P (batch, size, k),
    with `x @ P` the k largest values, the largest last. `steepness`, `art_lambda`, `distribution` and
    `sorting_network` may be set at any time; a new combination is built at its first call. Only comparators
    that the k ranks depend on are computed.

    Args:
        sorting_network_type: "odd_even", "bitonic" or "splitter_selection".
        size: number of values.
        k: number of the largest ones.
        sparse: which networks there are, as in difftopk: no odd_even if True, no splitter_selection if False.
            Here no network is a matrix, and bitonic has one kernel for both.
        device: "cpu", or "cuda" for tensors on either.
        steepness: 1 / unit of x; with logistic_phi in units of x^(λ − 1). A tensor of shape (), (1,) or
            (batch, 1) is taken too; a negative one selects the smallest.
        art_lambda: strength of the activation replacement trick, used by "logistic_phi" alone.
        interpolation_type: deprecated name of `distribution`.
        distribution: logistic, logistic_phi, gaussian, reciprocal, cauchy or optimal.

    Raises:
        LoweringError: an unknown network, distribution or device, or two distributions; or a k below 1.
        OperandTypeError: a sparse that is no bool.
        NetworkError: a size that no network has.
        PropertyError: a k above the size.
        VerificationError: a size for which difftopk's own network does not select the k largest.

    >>> net = DiffTopkNet("splitter_selection", 6, 2, sparse=True, steepness=100.0)
    >>> x = torch.tensor([[3.0, 5.0, 2.0, 0.0, 4.0, 1.0]])
    >>> nothing, P = net(x)
    >>> P.shape, (x @ P[0]).round()
    (torch.Size([1, 6, 2]), tensor([[4., 5.]]))
    """

    def __init__(
        self,
        sorting_network_type: str,
        size: int,
        k: int,
        sparse: bool = False,
        device: str | torch.device = "cpu",
        steepness: float | Tensor = 10.0,
        art_lambda: float = 0.25,
        interpolation_type: str | None = None,
        distribution: str | None = "cauchy",
    ) -> None:
        is_sparse, top = flag("sparse", sparse, OperandTypeError), integer("k", k, LoweringError)
        splitter: Callable[[int], Network] = partial(splitter_selection, top)
        known = {**NETWORKS, "splitter_selection": splitter}
        networks = {name: known[name] for name in SPARSE[is_sparse]}
        relaxed = (steepness, art_lambda, interpolation_type, distribution)
        super().__init__(networks, "difftopk", top, sorting_network_type, size, device, *relaxed)
        self.k, self.sparse = top, is_sparse

    def forward(self, vectors: Tensor) -> tuple[None, Tensor]:
        """Return None, and P (batch, size, k): column j is of the (k - j)-th largest value.

        Raises:
            OperandError: vectors that are not (batch, size).
            OperandTypeError: vectors that are no tensor.
        """
        operator = self._operator(vectors)
        assert isinstance(operator, Selector)
        sign, steepness = signed(vectors, self.steepness)
        rows = operator.select_with_rows(vectors if sign is None else sign * vectors, steepness)[1]
        return None, rows.flip(-2).transpose(-1, -2)


class TopKCrossEntropyLoss(torch.nn.Module):
    """difftopk.TopKCrossEntropyLoss: the top-k cross entropy of outputs (batch, n) and labels (batch,).

    Arguments, defaults and the loss are difftopk's, version 0.2.0. p_k[j] weights "the label is among the top
    j + 1". Let r_i be the weight of the label at rank i, rank 0 the largest output. The loss is the mean of

        -log(q (1 - 2e-7) + 1e-7)        q = Σ_j p_k[j] Σ_{i ≤ j} r_i

    The network is `top_k_net`, whose `steepness` may be set at any time. `nsc.nn.TopKCrossEntropy` has the
    same loss with more networks, a learnable steepness and any leading axes.

    Args:
        diffsort_method: "bitonic", "splitter_selection", "bitonic__non_sparse" or "odd_even". The first and
            the third are one network here.
        inverse_temperature: the network's steepness, in 1 / unit of the outputs.
        p_k: the weights, 0 or more, with a sum of 1.
        n: number of classes.
        m: the label's output and the m - 1 largest others are compared, len(p_k) < m < n; None: all.
        distribution: as in `DiffTopkNet`. It must be named, as there is no default.
        art_lambda: as in `DiffTopkNet`.
        device: "cpu", or "cuda" for tensors on either.
        top1_mode: how the term j = 0 is computed:

            - "sm": the softmax of the compared outputs takes the place of r_0.
            - "smce": q has the terms j > 0 alone. The loss is p_k[0] times the cross entropy of the compared
              outputs plus the other weights' sum times the formula's loss.
            - "sort": as in the formula.

    Raises:
        LoweringError: another method, such as "neuralsort" or "softsort", which are no networks, or another
            distribution or device.
        OperandError: weights, an m, a top1_mode or an n that do not fit.
        OperandTypeError: an argument of another type.

    >>> loss = TopKCrossEntropyLoss("bitonic", 5.0, [0.5, 0, 0, 0, 0.5], n=10, distribution="cauchy")
    >>> outputs = 9.0 * torch.eye(10)[3:4]
    >>> bool(loss(outputs, torch.tensor([3])) < loss(outputs, torch.tensor([7])))
    True
    """

    def __init__(
        self,
        diffsort_method: str,
        inverse_temperature: float,
        p_k: Sequence[float],
        n: int,
        m: int | None = None,
        distribution: str | None = None,
        art_lambda: float = 0.25,
        device: str | torch.device = "cpu",
        top1_mode: str = "sm",
    ) -> None:
        super().__init__()
        own = "TopKCrossEntropyLoss"
        if not is_name(diffsort_method, METHODS):
            raise LoweringError(
                f"diffsort_method must be one of {', '.join(METHODS)}, got {diffsort_method!r}: nsc relaxes "
                "networks alone"
            )
        if not is_name(top1_mode, TOP1_MODES):
            raise OperandError(f"{own}: top1_mode must be one of {', '.join(TOP1_MODES)}, got {top1_mode!r}")
        n, m = positive_of(own, "n", n), None if m is None else positive_of(own, "m", m)
        self.p_k = weights_of(own, p_k)
        k = len(self.p_k)
        if k > n:
            raise OperandError(f"{own}: p_k has {k} weights for {n} classes: leave out some")
        if m is not None and not k < m < n:
            raise OperandError(
                f"{own}: m must be more than the {count(k, 'weight')} and less than n = {n}, got {m}: None "
                "compares all"
            )
        self.diffsort_method, self.inverse_temperature = diffsort_method, inverse_temperature
        self.k, self.n, self.m = k, n, m
        self.device, self.top1_mode = device, top1_mode
        kind, is_sparse = METHODS[diffsort_method]
        self.top_k_net = DiffTopkNet(
            kind,
            n if m is None else m,
            k,
            is_sparse,
            device,
            inverse_temperature,
            art_lambda,
            distribution=distribution,
        )

    def forward(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of labels (batch,), integers 0 … n - 1, for outputs (batch, n).

        Returns:
            A 0-d tensor of the dtype of the outputs, under autocast at least float32; float16 and bfloat16
            are computed in float32.

        Raises:
            OperandError: outputs that are not (batch, n); labels of another shape, or that are no class.
            OperandTypeError: outputs without a floating-point dtype, labels without an integer one.
        """
        return self._loss(outputs, labels, "mean")

    @by_samples(Axes.FIRST)
    def _loss(self, outputs: Tensor, labels: Tensor, reduction: str) -> Tensor:
        own = "TopKCrossEntropyLoss"
        check_dense(own, "outputs", outputs)
        if outputs.dim() != 2 or outputs.shape[1] != self.n:
            raise OperandError(f"{own} takes outputs (batch, {self.n}), got {tuple(outputs.shape)}")
        compared, labels = compared_of(own, outputs, labels, self.n, self.m)
        places, p = labels.unsqueeze(-1), self.top_k_net(compared)[1]
        shares = p.gather(1, places.unsqueeze(-1).expand_as(p[:, :1])).squeeze(1).flip(-1)
        losses = losses_of(shares, compared, places, self.p_k, TOP1_MODES[self.top1_mode])
        return reduced(losses, None, reduction, outputs)

"""torchsort's functions by another relaxation, of sorting networks, so that a user changes one import.

from nsc.compat.torchsort import soft_rank    # was: from torchsort import soft_rank

torchsort projects onto the permutahedron, nsc relaxes the comparators of a network. The results of both are
exact in the limit of a small strength.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from nsc.arguments import is_name, real
from nsc.compat.functional import real_of
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import check_dense
from nsc.sizes import Sizes

__all__ = ["soft_rank", "soft_sort"]

# Steepness times strength, for n values. A comparator's slope is steepness / 4, so the ranks of two values
# have torchsort's slope where the values are equal: 1 / (2 strength) for l2, 3 / (4 strength) for kl. For
# more values kl's slope is (2 r + 1) / (4 strength) between the ranks r and r + 1; the slope of the middle
# ranks is taken here.
REGULARIZATIONS: dict[str, Callable[[int], int]] = {"l2": lambda n: 2, "kl": lambda n: n + 1}
_MOST = 1024  # wires of the largest network, unless there are more values


def soft_rank(
    values: Tensor, regularization: str = "l2", regularization_strength: float | Tensor = 1.0
) -> Tensor:
    """Return soft ranks in each row of values (batch, n), 1 the smallest, in place of torchsort.soft_rank.

    They are the ranks of an odd-even merge network of logistic comparators, without the activation
    replacement trick. The steepness is 2 / strength for "l2", and (n + 1) / strength for "kl". So the ranks
    are a function of values / strength, as torchsort's are. The ranks of two equal values have torchsort's
    slope. For a small strength they are the exact ranks. The ranks of a row add up to
    n (n + 1) / 2, as torchsort's for "l2".

    Unlike torchsort's ranks, they are exact in the limit alone, and equal values may have different ranks,
    which depend on the network. If the strength is larger than the gaps between values, torchsort's ranks lie
    closer together. For a large strength torchsort's ranks are all (n + 1) / 2; the ranks here are so only if
    n is a power of two.

    The networks have the sizes of `nsc.compile_sizes`. Cost of a row: O(size of the network), n log² n / 4.

    Args:
        values: (batch, n) finite numbers; integers are converted to torch's default dtype. A NaN makes the
            ranks of its row NaN.
        regularization: "l2" or "kl".
        regularization_strength: above 0, in the unit of the values.

    Returns:
        (batch, n), of the dtype of the values. float16 and bfloat16 are computed in float32.

    Raises:
        OperandError: values that are not (batch, n), another regularization, or a strength that is not above
            0 and finite.
        OperandTypeError: values that are no tensor of real numbers, or a strength that is no number.

    >>> x = torch.tensor([[8, 0, 5, 3, 2, 1, 6, 7, 9]])
    >>> soft_rank(x, regularization_strength=0.01).round()
    tensor([[8., 1., 5., 4., 3., 2., 6., 7., 9.]])
    """
    return 1 + _relaxed("soft_rank", Sizes.rank, values, regularization, regularization_strength)


def soft_sort(
    values: Tensor, regularization: str = "l2", regularization_strength: float | Tensor = 1.0
) -> Tensor:
    """Return values (batch, n) softly sorted in each row, ascending, in place of torchsort.soft_sort.

    They are P @ values, with the P whose ranks `soft_rank` returns for the same arguments. For a small
    strength they are the sorted values. The sum of a row stays the same, as in torchsort.

    torchsort's strength is in 1 / unit of the values, and the strength here in their unit. torchsort pulls
    together neighbours that are further apart than 1 / strength, and leaves close ones as they are. A network
    mixes close ones.

    Arguments, errors and cost: see `soft_rank`.

    >>> soft_sort(torch.tensor([[8.0, 0.0, 5.0, 3.0]]), regularization_strength=0.01).round()
    tensor([[0., 3., 5., 8.]])
    """
    return _relaxed("soft_sort", Sizes.sort, values, regularization, regularization_strength)


def _relaxed(
    caller: str,
    method: Callable[..., Tensor],
    values: Tensor,
    regularization: str,
    strength: float | Tensor,
) -> Tensor:
    check_dense(caller, "values", values)
    if values.dim() != 2:
        raise OperandError(f"{caller} takes values (batch, n), got {tuple(values.shape)}")
    if not is_name(regularization, REGULARIZATIONS):
        raise OperandError(
            f"{caller}: regularization must be one of {', '.join(REGULARIZATIONS)}, got {regularization!r}"
        )
    if not isinstance(strength, Tensor):
        strength = _number(caller, strength)
    if values.dtype.is_complex:
        raise OperandTypeError(
            f"{caller}: values must be real numbers, got {values.dtype}: use .abs() or .real"
        )
    if not values.dtype.is_floating_point:
        values = values.to(torch.get_default_dtype())
    n = int(values.shape[1])
    if not n:
        return values.clone()
    sizes = Sizes(
        "odd_even_merge",
        max(_MOST, 1 << (n - 1).bit_length()),
        relaxation="logistic",
        art_lambda=0.0,
        dtypes=(real_of(values),),
        targets=("cpu", "cuda") if values.is_cuda else ("cpu",),
    )
    return method(sizes, values, REGULARIZATIONS[regularization](n) / strength)


def _number(caller: str, strength: object) -> float:
    number = real(strength)
    if number is None:
        raise OperandTypeError(f"{caller}: regularization_strength must be a number, got {strength!r}")
    if not 0 < number < math.inf:
        raise OperandError(f"{caller}: regularization_strength must be above 0 and finite, got {number!r}")
    return number

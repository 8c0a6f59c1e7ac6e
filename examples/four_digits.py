"""Images of four-digit numbers, joined from scikit-learn's digits, a CNN that scores them, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

DIGITS, FIVE = 4, 5


@dataclass(frozen=True)
class FourDigits:
    """Images of single digits, of which numbers are joined.

    Attributes:
        images: (m, 1, h, w), bytes.
        labels: (m,), the digits on them, int64.

    Source: Grover et al., ICLR 2019; Petersen et al., ICML 2021, section 5.1.
    """

    images: Tensor
    labels: Tensor

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of a number's image, (1, h, 4w)."""
        channels, height, width = self.images.shape[1:]
        return channels, height, DIGITS * width

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return images with pixels in [0, 1], float32 (count, 1, h, 4w), and their numbers, int64 (count,).

        Every digit is drawn independently, uniformly and with replacement. Numbers may begin with 0.
        """
        picks = torch.randint(len(self.labels), (count, DIGITS), generator=generator)
        # (count, 4, 1, h, w) to (count, 1, h, 4, w): the digits stand side by side.
        joined = self.images[picks].permute(0, 2, 3, 1, 4).reshape(count, *self.shape)
        return joined / 255, self.labels[picks] @ torch.tensor([1000, 100, 10, 1])


def load() -> tuple[FourDigits, FourDigits, FourDigits]:
    """Return scikit-learn's 1,797 digits of 8 × 8: 70, 10 and 20 % of each class, the same on every call."""
    bunch = load_digits()
    # 17 levels of grey as bytes; halves go up.
    images = torch.from_numpy(((bunch.images.astype(np.int64) * 255 + 8) // 16).astype(np.uint8))[:, None]
    labels = torch.from_numpy(bunch.target).long()
    rest, test = _cut(bunch.target, Fraction(1, 5))
    training, validation = _cut(bunch.target[rest], Fraction(1, 8))
    parts = rest[training], rest[validation], test
    return tuple(FourDigits(images[part], labels[part]) for part in parts)  # type: ignore[return-value]


def joined(one: FourDigits, other: FourDigits) -> FourDigits:
    """Return the digits of both."""
    return FourDigits(torch.cat([one.images, other.images]), torch.cat([one.labels, other.labels]))


def _cut(
    classes: npt.NDArray[np.int64], share: Fraction
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indices that stay, and the others: a share of each class, rounded by largest remainders."""
    sizes = np.bincount(classes)
    taken, remainders = np.divmod(sizes * share.numerator, share.denominator)
    missing = round(len(classes) * share) - int(taken.sum())
    taken[np.argsort(-remainders, kind="stable")[:missing]] += 1
    # RandomState's numbers are the same in every version of NumPy; its successors' numbers may change.
    random = np.random.RandomState(0)
    gives = np.zeros(len(classes), dtype=bool)
    for label, number in enumerate(taken):
        gives[random.permutation(np.flatnonzero(classes == label))[:number]] = True
    return np.flatnonzero(~gives), np.flatnonzero(gives)


def scorer(shape: tuple[int, int, int]) -> nn.Module:
    """Return a CNN from images, (m, 1, h, w), to scores, (m,), with half of the paper's filters.

    Pooling comes before ReLU: the values are the same, on a quarter of the elements.
    """
    channels, height, width = shape
    layers: list[nn.Module] = []
    for filters in (16, 32):
        layers += [nn.Conv2d(channels, filters, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()]
        channels, height, width = filters, height // 2, width // 2
    layers += [nn.Flatten(), nn.Linear(channels * height * width, 64), nn.ReLU()]
    layers += [nn.Linear(64, 1), nn.Flatten(0)]
    # In this layout a step on a CPU is faster by about a quarter.
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def metrics(scores: Tensor, numbers: Tensor, n: int) -> dict[str, float]:
    """Return the metrics of m scores and numbers, (m,), cut into samples of n and of 5; the rest is left out.

    Equal numbers may come in any order; equal scores stay in the order in which they were drawn.

    Returns:
        Shares in [0, 1]: `em` of samples of n with all ranks right, `ew` of right ranks in samples of n,
        `em5` of samples of 5 with all ranks right.
    """
    right, fives = _right_ranks(scores, numbers, n), _right_ranks(scores, numbers, FIVE)
    shares = {"em": right.all(-1), "ew": right, "em5": fives.all(-1)}
    return {name: share.double().mean().item() for name, share in shares.items()}


def _right_ranks(scores: Tensor, numbers: Tensor, n: int) -> Tensor:
    """Return whether the scores put the right number at each rank, booleans (m // n, n)."""
    whole = len(scores) // n * n
    scores, numbers = scores[:whole].view(-1, n), numbers[:whole].view(-1, n)
    return numbers.gather(-1, scores.argsort(dim=-1, stable=True)) == numbers.sort(dim=-1).values

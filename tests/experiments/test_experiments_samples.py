"""Four-digit numbers and house numbers: what is on an image is its value, and a generator decides it."""

from __future__ import annotations

import pytest
import torch

from experiments.data import Part
from experiments.samples import FourDigits, HouseNumbers, Samples

# Image i shows i·25 everywhere, so its digit can be read off any pixel.
PLAIN = Part(
    (torch.arange(10) * 25).to(torch.uint8).reshape(10, 1, 1, 1).expand(10, 1, 2, 3).contiguous(),
    torch.arange(10),
)


def houses() -> Part:
    """Return four images whose channels say the image, the row and the column of each pixel."""
    images = torch.empty(4, 3, 64, 64, dtype=torch.uint8)
    images[:, 0] = (torch.arange(4) * 50).to(torch.uint8)[:, None, None]
    images[:, 1] = torch.arange(64, dtype=torch.uint8)[:, None]
    images[:, 2] = torch.arange(64, dtype=torch.uint8)
    return Part(images, torch.tensor([7, 12, 305, 12]))


def pixels(images: torch.Tensor) -> torch.Tensor:
    """Return the bytes that house numbers were normalised from."""
    return ((images + 1) * 127.5).round().long()


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_numbers_join_four_digits() -> None:
    samples = FourDigits(PLAIN)
    images, numbers = samples.draw(50, seeded(0))
    assert images.shape == (50, *samples.shape) == (50, 1, 2, 12)
    assert images.dtype == torch.float32
    assert numbers.dtype == torch.int64
    for row in (0, 1):
        for column in (0, 2):
            shown = (images[:, 0, row, column::3] * 255 / 25).round().long()
            assert torch.equal(shown @ torch.tensor([1000, 100, 10, 1]), numbers)


def test_every_digit_is_as_likely_at_every_place() -> None:
    _, numbers = FourDigits(PLAIN).draw(20_000, seeded(1))
    for place in (1, 10, 100, 1000):
        counts = (numbers // place % 10).bincount(minlength=10)
        # Five standard deviations of a binomial count of 2,000.
        assert (counts - 2000).abs().max() < 5 * (20_000 * 0.1 * 0.9) ** 0.5


def test_a_random_crop_is_a_piece_of_its_image() -> None:
    part = houses()
    samples = HouseNumbers(part, "random")
    images, numbers = samples.draw(2000, seeded(3))
    assert images.shape == (2000, *samples.shape) == (2000, 3, 54, 54)
    assert images.dtype == torch.float32
    shown = pixels(images)
    which = shown[:, 0, 0, 0] // 50
    assert torch.equal(part.labels[which], numbers)
    top, left = shown[:, 1, :1, :1], shown[:, 2, :1, :1]
    assert torch.equal(shown[:, 1], (top + torch.arange(54)[:, None]).expand(-1, 54, 54))
    assert torch.equal(shown[:, 2], (left + torch.arange(54)).expand(-1, 54, 54))
    # 2,000 draws leave out one of 121 corners with a probability below 1e-5.
    assert len((top * 11 + left).unique()) == 121


def test_the_centre_crop_is_the_centre() -> None:
    images, numbers = HouseNumbers(houses(), "centre").draw(40, seeded(4))
    shown = pixels(images)
    assert shown[:, 1, 0, 0].unique().tolist() == shown[:, 2, 0, 0].unique().tolist() == [5]
    assert shown[:, 1, -1, 0].unique().tolist() == [58]
    assert set(numbers.tolist()) == {7, 12, 305}


@pytest.mark.parametrize(
    "samples",
    [FourDigits(PLAIN), HouseNumbers(houses(), "random"), HouseNumbers(houses(), "centre")],
    ids=["four digits", "random crop", "centre crop"],
)
def test_a_kept_state_goes_on_with_the_same_draws(samples: Samples) -> None:
    generator = seeded(5)
    samples.draw(3, generator)
    state = generator.get_state()
    torch.manual_seed(0)  # The global generator has no part in it.
    first = samples.draw(6, generator)
    torch.manual_seed(1)
    again = samples.draw(6, torch.Generator().set_state(state))
    other = samples.draw(6, generator)
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])

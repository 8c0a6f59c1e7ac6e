"""The classification task on small CIFAR files, and its metrics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from works import run_of

from experiments.classification import Classification, channel_constants, share_within
from experiments.data import load
from experiments.errors import ExperimentError
from experiments.models import MODELS

pytestmark = pytest.mark.slow("methods of the experiments run")

CPU = torch.device("cpu")
RUN = replace(
    run_of(0),
    task="topk",
    data="cifar10",
    model="half",
    method="topk:1",
    n=1,
    batch=24,
    steps=15,
    learning_rate=3e-3,
    validation=1000,
    test=1000,
)


def records(rng, count, classes, labels):
    """Return the bytes of a CIFAR file: each image is brighter in the rows that its class says."""
    names = np.arange(count) % classes
    images = rng.integers(0, 60, (count, 3, 32, 32))
    for image, name in zip(images, names, strict=True):
        image[:, 3 * (name % 10) : 3 * (name % 10) + 3] += 150
    rows = [np.repeat(names[:, None], labels, axis=1), images.reshape(count, -1)]
    return np.concatenate(rows, axis=1).astype(np.uint8).tobytes()


@pytest.fixture(scope="module")
def cifar10(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("cifar10"), np.random.default_rng(0)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(records(rng, 40, 10, 1))
    return load("cifar10", folder)


def task(parts, method="topk:1", **changes):
    run = replace(RUN, method=method, **changes)
    return Classification(run, parts, CPU, torch.Generator().manual_seed(run.seed))


@pytest.mark.parametrize("method", ["softmax", "topk:.5,0,0,0,.5+m=7"])
def test_a_model_learns_the_classes_of_small_cifar_files(cifar10, method):
    learning = task(cifar10, method)
    assert (learning.shape, learning.outputs, learning.watched) == ((3, 32, 32), 10, "top1")
    model = MODELS[RUN.model](learning.shape, learning.outputs)
    optimiser = torch.optim.Adam(model.parameters(), RUN.learning_rate)
    before = learning.measure(model.eval(), "test")
    losses = []
    for _ in range(RUN.steps):
        loss = learning.loss(model.train())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    after = learning.measure(model.eval(), "test")
    assert losses[-1] < losses[0] / 2
    assert after["top5"] > 0.9 > before["top5"]
    assert after["top1"] > before["top1"] + 0.3
    assert learning.measure(model, "test") == after
    assert learning.measure(model, "training").keys() == {"top1", "top5"}


class Watching(torch.nn.Module):
    """Keeps the images that it is given; its logits are zeros."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, images):
        self.seen.append(images)
        return torch.zeros(len(images), 10)


def test_images_are_normalised_by_the_training_part(cifar10):
    learning, model = task(cifar10, batch=2000), Watching()
    learning.loss(model)
    # Drawn with replacement: the batch has the part's constants within sampling errors.
    torch.testing.assert_close(model.seen[0].mean((0, 2, 3)), torch.zeros(3), rtol=0, atol=0.01)
    torch.testing.assert_close(model.seen[0].std((0, 2, 3)), torch.ones(3), rtol=0, atol=0.01)
    mean, deviation = channel_constants(cifar10.training.images)
    learning.measure(model, "test")
    torch.testing.assert_close(model.seen[1] * deviation + mean, cifar10.test.images / 255)


def test_batches_come_from_the_generator_alone(cifar10):
    learning, model = task(cifar10, noise=0.1), Watching()
    state = learning._generator.get_state()
    for _ in range(2):
        learning.loss(model)
    learning._generator.set_state(state)
    torch.manual_seed(99)
    for _ in range(2):
        learning.loss(model)
    first, second, first_again, second_again = model.seen
    assert torch.equal(first, first_again)
    assert torch.equal(second, second_again)
    assert not torch.equal(first, second)
    quiet, model = task(cifar10), Watching()
    quiet.loss(model)
    noise = (first - model.seen[0]) * channel_constants(cifar10.training.images)[1]
    assert noise.std().item() == pytest.approx(0.1, rel=0.02)


def test_a_part_is_measured_on_as_many_images_as_the_run_asks_for(cifar10):
    model = Watching()
    task(cifar10, test=7, validation=5).measure(model, "test")
    task(cifar10, test=7, validation=5, seed=3).measure(model, "test")
    task(cifar10, test=7, validation=5).measure(model, "validation")
    task(cifar10, test=1000).measure(model, "test")
    assert [len(images) for images in model.seen] == [7, 7, 5, len(cifar10.test.labels)]
    assert torch.equal(model.seen[0], model.seen[1])


def test_digits_are_classes_and_house_numbers_are_not(cifar10):
    learning = task(load("digits"), data="digits")
    assert (learning.shape, learning.outputs) == ((1, 8, 8), 10)
    with pytest.raises(
        ExperimentError, match=r"svhn has numbers, not classes: choose one of digits, .*cifar10"
    ):
        task(cifar10, data="svhn")


logits = st.lists(
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=4, max_size=4), min_size=1, max_size=8
)


@given(logits, st.integers(1, 6), st.data())
def test_the_share_counts_larger_logits_and_equal_ones_of_smaller_classes(rows, k, data):
    labels = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    before = [
        sum(value > row[label] or (value == row[label] and place < label) for place, value in enumerate(row))
        for row, label in zip(rows, labels, strict=True)
    ]
    expected = sum(count < k for count in before) / len(rows)
    assert share_within(torch.tensor(rows), torch.tensor(labels), k) == pytest.approx(expected)

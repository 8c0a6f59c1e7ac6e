"""Catches models in plain torch that call an operator of nsc, or that compute other values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nsc
from nsc.compiler.relaxations import SIGMOIDS
from nsc.runtime.dispatch.ways import is_written_out

# torch's exporter and onnxruntime take half a minute of a processor.
ONNX = pytest.mark.nightly("torch writes ONNX")
N = 4
BATCH = {0: torch.export.Dim("batch", min=2, max=100)}


class Model(torch.nn.Module):
    """Calls of nsc on scores (batch, N)."""

    def __init__(self):
        super().__init__()
        self.sorting = nsc.nn.SortingNetwork("odd_even", N, steepness=5.0)
        self.selecting = nsc.nn.SelectionNetwork("best", N, select=nsc.ranks(3, 1), steepness=5.0)
        self.smoothing = nsc.nn.MedianFilter2d(3, "mirror")

    def forward(self, x):
        values, P = self.sorting(x)
        exact, indices = self.sorting.hard_sort(x, descending=True)
        selected, rows = self.selecting.select_with_rows(x)
        hard, places = self.selecting.hard_select(x)
        smooth = self.smoothing(x.reshape(-1, 2, 2))
        loss = self.sorting.cross_entropy(x, indices)
        return values, P, exact, indices, selected, rows, hard, places, smooth, loss


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def program(model):
    with nsc.plain_torch():
        return torch.export.export(model, (torch.randn(3, N),), dynamic_shapes=(BATCH,))


def results_of(program, x, folder):
    """Return what onnxruntime computes with an exported program."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    file = str(folder / "model.onnx")
    torch.onnx.export(program, f=file, verbose=False)
    session = runtime.InferenceSession(file)
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})


def test_a_program_has_no_operator_of_nsc_and_the_same_values_and_gradients(model, program):
    assert not [node for node in program.graph.nodes if "nsc" in str(node.target)]
    gradients = []
    for call in (model, program.module()):
        x = torch.linspace(-1, 1, 7 * N).sin().reshape(7, N).requires_grad_()
        values, P, *others, loss = call(x)
        (values.square().sum() + P[:, 0].square().sum() + loss).backward()
        gradients.append((x.grad, values, P, *others, loss))
    torch.testing.assert_close(*gradients)


def test_blocks_of_two_threads_may_end_in_any_order():
    first, second = nsc.plain_torch(), nsc.plain_torch()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert is_written_out()
    second.__exit__(None, None, None)
    assert not is_written_out()


def test_it_ends_with_its_block():
    model = nsc.nn.SortingNetwork("odd_even", N)
    with pytest.raises(ZeroDivisionError), nsc.plain_torch(), nsc.plain_torch():
        _ = 1 / 0
    program = torch.export.export(model, (torch.randn(3, N),))
    assert [node for node in program.graph.nodes if "nsc" in str(node.target)]


@ONNX
def test_onnx_computes_the_same_values(model, program, tmp_path):
    x = torch.randn(7, N)
    results = results_of(program, x, tmp_path)
    with torch.no_grad():
        for actual, expected in zip(results, model(x), strict=True):
            np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=1e-5)


@ONNX
# onnxruntime has no Erf of float64, by which gaussian is exact in its tails.
@pytest.mark.parametrize("relaxation", [name for name in SIGMOIDS if name != "gaussian"])
def test_onnx_has_every_relaxation(relaxation, tmp_path):
    model = nsc.nn.SortingNetwork("bitonic", 8, steepness=5.0, relaxation=relaxation)
    x = torch.randn(7, 8)
    with torch.no_grad(), nsc.plain_torch():
        program = torch.export.export(model, (x[:3],), dynamic_shapes=(BATCH,))
    results = results_of(program, x, tmp_path)
    with torch.no_grad():
        for actual, expected in zip(results, model(x), strict=True):
            np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=1e-5)

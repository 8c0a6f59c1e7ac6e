"""Modules that differ from their operators, that pickles, workers or training break, or that hold P."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import nsc
from nsc.nn import SelectionNetwork, SortingNetwork

pytestmark = pytest.mark.slow("torch compiles, exports and transforms")

ROOT = Path(__file__).parents[2]


@functools.cache
def operator():
    return nsc.compile("bitonic", 8)


def run(script, *arguments, **environment):
    """Run a script in a process of its own and return its output."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_steepness_is_no_parameter_unless_it_learns():
    layer = SortingNetwork("bitonic", 8, steepness=3.0)
    assert SortingNetwork("bitonic", 8).steepness.item() == pytest.approx(12)
    assert "steepness=3" in repr(layer)
    assert list(layer.parameters()) == []


def test_learnable_steepness_learns_and_stays_positive():
    layer = SortingNetwork(operator(), steepness=0.1, learnable=True)
    optimiser = torch.optim.SGD(layer.parameters(), lr=5.0)
    x = torch.randn(32, 8)
    ranks = x.argsort(-1).argsort(-1)
    losses = []
    for _ in range(30):
        loss = layer.cross_entropy(x, ranks)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        assert layer.steepness.item() > 0
    assert losses[-1] < losses[0] / 2, "a steeper network sorts right scores better"


@pytest.mark.parametrize("steepness", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_steepness_of_a_module(steepness):
    with pytest.raises(nsc.OperandError, match="above 0"):
        SortingNetwork(operator(), steepness=steepness)


def test_another_process_loads_a_module(tmp_path):
    # No other test uses this name: a kernel built with other flags may have other bits.
    layer = SortingNetwork("bitonic", 8, steepness=3.0, learnable=True, name="pickled_8")
    x = torch.randn(2, 8)
    state = SortingNetwork("bitonic", 8, learnable=True, name="pickled_8")
    state.load_state_dict(layer.state_dict())
    assert torch.equal(state(x)[0], layer(x)[0])
    torch.save(layer, tmp_path / "layer.pt")
    torch.save(x, tmp_path / "x.pt")
    output = run(
        """
        import sys, torch
        layer = torch.load(sys.argv[1], weights_only=False)
        print(layer(torch.load(sys.argv[2]))[0].double().sum().item())
        """,
        tmp_path / "layer.pt",
        tmp_path / "x.pt",
    )
    assert float(output) == layer(x)[0].double().sum().item()


class Sorted(torch.utils.data.Dataset):
    def __init__(self, op):
        self.op = op

    def __len__(self):
        return 12

    def __getitem__(self, index):
        x = torch.arange(8.0).roll(index).requires_grad_()
        values, P = self.op.sort_with_permutation(x, 50.0)
        (grad,) = torch.autograd.grad(P[0].sum() + values[0], x)
        return values.detach(), grad


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_data_loader_workers(context):
    op = operator()
    op.sort(torch.randn(64, 8))
    workers = 2 if context == "fork" else 1  # one that is spawned imports torch anew
    loader = torch.utils.data.DataLoader(Sorted(op), 4, num_workers=workers, multiprocessing_context=context)
    batches = list(loader)
    values = torch.cat([values for values, _ in batches])
    torch.testing.assert_close(values, torch.arange(8.0).expand(12, 8), rtol=0, atol=0.2)
    assert torch.equal(values, torch.stack([Sorted(op)[i][0] for i in range(12)]))


@pytest.mark.nightly("processes train together")
def test_distributed_data_parallel_in_two_processes(tmp_path):
    output = run(
        """
        import sys, torch, torch.distributed as dist, torch.multiprocessing as mp
        from torch.nn.parallel import DistributedDataParallel
        from nsc.nn import SortingNetwork

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scores = torch.nn.Linear(3, 1)
                self.sorter = SortingNetwork("bitonic", 8, steepness=5.0, learnable=True)
            def forward(self, features, ranks):
                return self.sorter.cross_entropy(self.scores(features).squeeze(-1), ranks)

        def data():
            torch.manual_seed(0)
            features = torch.randn(4, 8, 3)
            return Model(), features, features[..., 0].argsort(-1).argsort(-1)

        def work(rank, file, results):
            dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
            model, features, ranks = data()
            model = DistributedDataParallel(model)
            half = slice(2 * rank, 2 * rank + 2)
            model(features[half], ranks[half]).backward()
            results[rank] = torch.cat([p.grad.flatten().double() for p in model.parameters()])
            dist.barrier()
            dist.destroy_process_group()

        if __name__ == "__main__":
            manager = mp.get_context("fork").Manager()
            results = manager.dict()
            mp.start_processes(work, (sys.argv[1], results), 2, start_method="fork")
            model, features, ranks = data()
            model(features, ranks).backward()
            expected = torch.cat([p.grad.flatten().double() for p in model.parameters()])
            torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
            torch.testing.assert_close(results[0], expected, rtol=1e-4, atol=1e-6)
            print("agree", expected.abs().sum().item() > 0)
        """,
        tmp_path / "store",
        OMP_NUM_THREADS="1",
    )
    assert output.split() == ["agree", "True"]


@pytest.mark.nightly("processes train together")
def test_fsdp2_in_one_process(tmp_path):
    """A learnable steepness is sharded as other parameters are: it has an axis, and their dtype."""
    output = run(
        """
        import sys, torch, torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from nsc.nn import SortingNetwork

        dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), SortingNetwork("bitonic", 8, learnable=True))
        x = torch.randn(4, 8)
        model(x)[1].square().sum().backward()
        expected = [parameter.grad for parameter in model.parameters()]
        model.zero_grad()
        fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
        model(x)[1].square().sum().backward()
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad.full_tensor(), gradient)
        print(len(expected), "steepness=?" in repr(model))
        dist.destroy_process_group()
        """,
        tmp_path / "store",
    )
    assert output.split() == ["3", "True"]


PEAK = """
import torch, nsc

def peak_of(work):
    # Peak memory during the work, in megabytes above the memory before it.
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = peak()
    work()
    return peak() - before

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

"""


def test_losses_ranks_and_top_k_never_hold_P_and_P_takes_less_than_200_MB():
    """P at n = 1024 is 4 MB, and so is its gradient."""
    output = run(
        PEAK
        + """
op = nsc.compile("bitonic", 1024)
x = torch.randn(1, 1024, requires_grad=True)
op.sort(x).sum().backward()
ranks = torch.randperm(1024).unsqueeze(0)
for work in (
    lambda: op.cross_entropy(x, ranks).backward(),
    lambda: op.binary_cross_entropy(x, ranks).backward(),
    lambda: op.rank(x).sum().backward(),
    lambda: op.topk(x, 8)[1].sum().backward(),
    lambda: op.sort_with_permutation(x)[1].square().sum().backward(),
):
    work()  # the first call loads code
    print(peak_of(work))
""",
        OMP_NUM_THREADS="2",  # each thread has scratch memory of its own
        # Freed memory goes back to the system, so that the peak shows all memory of each call.
        MALLOC_MMAP_THRESHOLD_="65536",
        MALLOC_TRIM_THRESHOLD_="65536",
    )
    *without, with_P = map(float, output.split())
    assert max(without) < 4, without
    assert 8 < with_P < 200


def test_modules_do_what_their_operators_do_at_their_steepness():
    x, payload = torch.randn(4, 8), torch.randn(4, 8, 2)
    targets = {nsc.Sorter: torch.randn(4, 8).argsort(-1), nsc.Selector: torch.rand(4, 3, 8)}
    top = nsc.compile("bitonic", 8, select=nsc.top_k(3))
    arguments = {
        "route": (payload,),
        "topk": (3,),
        "top_k_weights": (3,),
    }
    cases = (
        (SortingNetwork(operator(), steepness=3.0), operator(), "sort_with_permutation"),
        (SelectionNetwork(top, steepness=3.0), top, "select_with_rows"),
    )
    for layer, op, forward in cases:
        arguments |= dict.fromkeys(("cross_entropy", "binary_cross_entropy"), (targets[type(op)],))
        # `loss` takes a name first, and has a test of its own.
        for name in (name for name in vars(type(op)) if not name.startswith("_")):
            if name in ("ranks", "loss"):
                continue
            options = {} if name.startswith("hard") else {"steepness": 3.0}
            expected = getattr(op, name)(x, *arguments.get(name, ()), **options)
            torch.testing.assert_close(getattr(layer, name)(x, *arguments.get(name, ())), expected)
        torch.testing.assert_close(layer(x), getattr(op, forward)(x, 3.0))
        torch.testing.assert_close(op(x), getattr(op, "sort" if op is not top else "select")(x))


def test_a_layer_takes_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        layer = SortingNetwork("bitonic", 4, learnable=True)
        values, _ = layer(torch.randn(2, 4))
    finally:
        torch.set_default_dtype(torch.float32)
    assert values.dtype == torch.float64

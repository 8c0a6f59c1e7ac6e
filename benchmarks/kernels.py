"""Kernels alone: the times of their C functions on one thread, beside the times of the whole operator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks import registers
from benchmarks.arithmetic import Arithmetic
from benchmarks.cases import Case, P
from benchmarks.growth import Work, work_of
from benchmarks.networks import operator
from benchmarks.peers import STEEPNESS, calls, pose
from nsc.contract.routings import ROUTINGS
from nsc.runtime.relaxed.kernel import Kernel
from nsc.runtime.relaxed.library import Functions

# Each function in turn is called for so long in a round; its quickest call counts.
ROUND_SECONDS = 0.05
ROUNDS = 9


@dataclass(frozen=True)
class KernelTime:
    """The quickest calls of one kernel, in seconds per sample.

    Attributes:
        case: the case: P and its gradient, or a loss and its gradient.
        registers: the set that the kernel is built for.
        forward: the C function of the forward pass; None where one function does everything, as for a loss.
        backward: the time of the backward pass.
        keys: both for the keys pass alone, which both of them begin or end with.
        operator: the operator in torch, forward and backward; None where it is built for other registers.
    """

    case: Case
    registers: str
    forward: float | None
    backward: float
    keys: float
    operator: float | None

    @property
    def seconds(self) -> float:
        """Forward and backward."""
        return (self.forward or 0.0) + self.backward

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds of a comparator on CONE_COLUMNS columns, forward and backward."""
        return self.seconds / self._work.on_columns * 1e9

    def limit(self, arithmetic: Arithmetic) -> float:
        """Return what the arithmetic of its comparators alone takes, in seconds per sample."""
        return arithmetic.seconds(self._work.on_columns)

    @property
    def _work(self) -> Work:
        return work_of(self.case.network, self.case.n, self.case.work)


def measure_kernels(case: Case, sets: Sequence[str]) -> list[KernelTime]:
    """Return the times of a case for each set of registers; all functions take turns."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    op = operator(case.network, case.n)
    turns: dict[tuple[str, str], Callable[[], object]] = {}
    for name in sets:
        with registers.built_for(name):
            kernel = Kernel(op.kernel.files)
            library = kernel.own_library()
        turns |= {
            (name, part): call for part, call in bound_calls(case, library.functions["float32"]).items()
        }
    turns[registers.present(), "operator"] = calls(pose(case, op), only="nsc")["nsc"]
    quickest = quickest_in_turns(turns, case.batch)
    return [
        KernelTime(
            case,
            name,
            forward=quickest.get((name, "forward")),
            backward=quickest[name, "backward"],
            keys=quickest[name, "keys forward"] + quickest[name, "keys backward"],
            operator=quickest.get((name, "operator")),
        )
        for name in sets
    ]


def bound_calls(case: Case, kernel: Functions) -> dict[str, Callable[[], object]]:
    """Return calls of a kernel's functions on memory of their own."""
    batch, n = case.batch, case.n
    x, values, x_grad = torch.randn(3, batch, n)
    ranks = x.argsort(-1).argsort(-1)
    upstream, permutation = torch.randn(2, batch, n, n)
    losses, steepness = torch.empty(batch), torch.tensor([STEEPNESS])
    # The calls hold addresses, so they keep the memory.
    kept = [x, values, x_grad, ranks, upstream, permutation, losses, steepness]

    def bound(
        function: Callable[..., int], routing: str, *results: torch.Tensor | None
    ) -> Callable[[], object]:
        payload = (ranks.data_ptr(), n, n) if ROUTINGS[routing].is_loss else (None, 0, 0)
        arguments = (
            *(ROUTINGS[routing].code, batch, x.data_ptr(), steepness.data_ptr(), 0),
            *payload,
            *(None if result is None else result.data_ptr() for result in results),
            None,  # no pool: one thread
        )

        def call() -> int:
            assert kept
            return function(*arguments)

        assert call() == 0
        return call

    forward, backward = kernel.forward, kernel.backward
    functions = {
        "keys forward": bound(forward, "none", values, None),
        "keys backward": bound(backward, "none", upstream, None, x_grad, None, None, None),
    }
    if case.work == P:
        functions["forward"] = bound(forward, "permutation", values, permutation)
        functions["backward"] = bound(backward, "permutation", None, upstream, x_grad, *[None] * 3)
    else:
        functions["backward"] = bound(backward, "cross_entropy", None, None, x_grad, None, None, losses)
    return functions


def quickest_in_turns(
    turns: Mapping[tuple[str, str], Callable[[], object]], batch: int
) -> dict[tuple[str, str], float]:
    """Return the seconds of the quickest call of each function, per sample."""
    quickest = dict.fromkeys(turns, float("inf"))
    for _ in range(ROUNDS):
        for key, call in turns.items():
            call()  # refills caches after the function before
            end = time.perf_counter() + ROUND_SECONDS
            while (start := time.perf_counter()) < end:
                call()
                quickest[key] = min(quickest[key], time.perf_counter() - start)
    return {key: seconds / batch for key, seconds in quickest.items()}

"""Checks of the kernels: against the plain torch reference, for equal bits in other runs, and in all the ways
in which torch launches them.

Each check yields a line for each problem.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from benchmarks.gpu.building import Subject
from benchmarks.gpu.events import DEVICE
from nsc.contract.routings import IGNORED, ROUTINGS, Payload
from nsc.operators.exact import DTYPE_NAMES
from nsc.runtime.relaxed import cuda, reference
from nsc.runtime.relaxed.call import Call, has_gradient, is_loss, payload_of
from nsc.runtime.relaxed.kernel import Kernel

# Error against the reference in float64, relative to the largest entry. The C++ kernels are off by up to 5e-5
# on these samples. Next to a tie the slope of the activation replacement trick changes so fast that float32
# may lose the gradient: an error may also be TIMES_FLOAT32 times the error of the reference in float32.
TOLERANCE = 2e-4
TIMES_FLOAT32 = 10
STEEPNESS = 2.0
PAYLOAD_COLUMNS, SELECTED_ROWS = 3, 2
STREAMS = 4


@dataclass(frozen=True)
class _Samples:
    """Arguments of a routing, with the samples as their first axis; those that it lacks are None."""

    routing: str
    x: Tensor
    steepness: Tensor
    payload: Tensor | None
    values_grad: Tensor
    routed_grad: Tensor | None

    def at(self, sample: int) -> _Samples:
        """Return one sample."""
        row = slice(sample, sample + 1)
        return _Samples(
            self.routing,
            self.x[row],
            self.steepness[row],
            None if self.payload is None else self.payload[row],
            self.values_grad[row],
            None if self.routed_grad is None else self.routed_grad[row],
        )

    def to(self, device: str) -> _Samples:
        """Return the same samples on a device."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return replace(
            self,
            x=self.x.to(device),
            steepness=self.steepness.to(device),
            payload=moved(self.payload),
            values_grad=self.values_grad.to(device),
            routed_grad=moved(self.routed_grad),
        )


def _draw(routing: str, batch: int, n: int, dtype: torch.dtype = torch.float32) -> _Samples:
    """Draw samples on the CPU, so that every device has the same."""
    payload, routed_grad, columns = None, None, n
    if payload_of(routing) is Payload.COLUMNS:
        columns = PAYLOAD_COLUMNS
        payload = torch.randn(batch, n, columns).to(DEVICE, dtype)
    elif payload_of(routing) is Payload.RANKS:
        columns = min(SELECTED_ROWS, n)
        payload = torch.arange(columns, device=DEVICE).expand(batch, -1)
    elif is_loss(routing):
        payload = _target(payload_of(routing), torch.rand(batch, n).argsort(-1)).to(DEVICE)
        payload = payload.to(dtype) if payload.is_floating_point() else payload
    if routing != "none":
        shape = (batch,) if is_loss(routing) else (batch, n, columns)
        routed_grad = torch.randn(shape).to(DEVICE, dtype)
    return _Samples(
        routing,
        torch.randn(batch, n).to(DEVICE, dtype),
        torch.full((batch,), STEEPNESS, device=DEVICE, dtype=dtype),
        payload,
        torch.randn(batch, n).to(DEVICE, dtype),
        routed_grad,
    )


def _target(form: Payload, ranks: Tensor) -> Tensor:
    """Return a target of some form: pairs of ranks, or random shares; two items in three count."""
    batch, n = ranks.shape
    counts = torch.arange(n) % 3 < 2
    if form is Payload.TARGET:
        return torch.where(counts, ranks, IGNORED)
    first = ranks // 2 * 2
    rows = torch.rand(batch, n, n)
    if form is Payload.INTERVALS:
        rows = torch.stack([first, (first + 1).clamp_max(n - 1)], 1).float()
    return torch.cat([rows, (counts / n).expand(batch, 1, n)], 1)


def _run(kernel: Kernel, s: _Samples) -> dict[str, Tensor]:
    """Return the results of the kernels on samples: values, the routed output, and the gradients."""
    inputs = s.x, s.steepness, s.payload, s.routing, kernel.spec
    values, routed = cuda.relax(Call.of(*inputs))
    gradients = cuda.relax_backward(Call.of(*inputs), s.values_grad, s.routed_grad)
    return _named(values, routed, *gradients)


def _run_reference(kernel: Kernel, s: _Samples, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Return the results of the plain torch reference on samples."""
    x, steepness = (t.detach().to(dtype).requires_grad_() for t in (s.x, s.steepness))
    leaves, payload = [x, steepness], s.payload
    if payload is not None and payload.is_floating_point():
        payload = payload.detach().to(dtype)
    if payload is not None and has_gradient(s.routing):
        leaves.append(payload.requires_grad_())
    values, routed = reference.relax(kernel, x, steepness, payload, s.routing)
    outputs = {values: s.values_grad.to(dtype)}
    if s.routed_grad is not None:
        outputs[routed] = s.routed_grad.to(dtype)
    gradients = torch.autograd.grad([*outputs], leaves, [*outputs.values()])
    payload_grad = gradients[2] if len(gradients) > 2 else None
    return _named(
        values.detach(),
        None if s.routed_grad is None else routed.detach(),
        gradients[0],
        gradients[1],
        payload_grad,
    )


def _named(
    values: Tensor | None,
    routed: Tensor | None,
    x_grad: Tensor,
    steepness_grad: Tensor | None,
    payload_grad: Tensor | None,
) -> dict[str, Tensor]:
    tensors = {
        "values": values,
        "the routed output": routed,
        "the gradient of x": x_grad,
        "the gradient of the steepness": steepness_grad,
        "the gradient of the payload": payload_grad,
    }
    return {name: t for name, t in tensors.items() if t is not None}


# -------------------------------------------------------------------------------------- every kernel


def check(
    subject: Subject, batch: int, routings: Iterable[str] = ROUTINGS, device: str | None = None
) -> Iterator[str]:
    """Check a batch: a second run and samples alone have the same bits, and samples alone are right.

    The first, the middle and the last sample run alone, and are compared with the reference, which runs on
    another device if one is named.
    """
    kernel, n = subject.sorter.kernel, subject.n
    torch.manual_seed(0)
    for routing in routings:
        samples = _draw(routing, batch, n, subject.dtype)
        results = _run(kernel, samples)
        for problem in _different(_run(kernel, samples), results):
            yield f"{routing}, a second run: {problem}"
        picked = sorted({0, batch // 2, batch - 1})
        alone = _joined(_run(kernel, samples.at(sample)) for sample in picked)
        for problem in _different({name: t[picked] for name, t in results.items()}, alone):
            yield f"{routing}, samples {picked} alone: {problem}"
        # Together, because a single sample's gradient of the steepness may happen to be near 0.
        expected = [samples.at(sample).to(device or DEVICE) for sample in picked]
        alone = {name: tensor.to(device or DEVICE) for name, tensor in alone.items()}
        for problem in _far(alone, partial(_references, kernel, expected)):
            yield f"{routing}: {problem}"


def _joined(samples: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the results of single samples as a batch."""
    results = list(samples)
    return {name: torch.cat([tensors[name] for tensors in results]) for name in results[0]}


def check_any_type(
    subject: Subject, batch: int, dtypes: Iterable[torch.dtype] = tuple(DTYPE_NAMES)
) -> Iterator[str]:
    """Check exact sorting of types along each axis in both orders against torch's sort on the CPU."""
    torch.manual_seed(0)
    for dtype in filter(is_sorted_by_torch, dtypes):
        for shape in ((batch, subject.n), (subject.n, batch), (3, subject.n, batch)):
            axis = shape.index(subject.n)
            x = _of_dtype(torch.randn(shape).mul(40), dtype).to(DEVICE)
            for descending, order in ((False, "ascending"), (True, "descending")):
                expected = torch.sort(x.cpu(), dim=axis, descending=descending, stable=True)
                found = subject.sorter.hard_sort(x, axis, descending=descending)
                alone = subject.sorter.hard_sort(x, axis, descending=descending, values_only=True)
                for name, a, b in (
                    ("values", found.values, expected.values),
                    ("indices", found.indices, expected.indices),
                    ("values alone", alone, expected.values),
                ):
                    wrong = (a.cpu() != b) & ~(a.cpu().isnan() & b.isnan())
                    if wrong.any():
                        yield (
                            f"{dtype}, axis {axis} of {shape}, {order}: "
                            f"{int(wrong.sum()):,} of the {name} are not torch.sort's"
                        )


def check_top_k(subject: Subject, batch: int) -> Iterator[str]:
    """Check the largest values of every type, and their indices, against torch's sort on the CPU."""
    torch.manual_seed(0)
    k = subject.build.form.top_k
    for dtype in filter(is_sorted_by_torch, DTYPE_NAMES):
        x = _of_dtype(torch.randn(batch, subject.n).mul(40), dtype)
        expected = torch.sort(x, descending=True, stable=True)
        found = subject.selector.hard_select(x.to(DEVICE))
        for name in ("values", "indices"):
            a, b = getattr(found, name).cpu(), getattr(expected, name)[:, :k]
            wrong = (a != b) & ~(a.isnan() & b.isnan())
            if wrong.any():
                yield f"{dtype}: {int(wrong.sum()):,} of the {name} are not torch.sort's"


def is_sorted_by_torch(dtype: torch.dtype) -> bool:
    """Return whether torch sorts a type on the CPU: there is nothing to compare the others with."""
    return dtype not in (torch.uint16, torch.uint32, torch.uint64)


def _of_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return numbers of a type, with ties and, of floats, NaN, infinities and both zeros."""
    if dtype == torch.bool:
        return x > 0
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return x.round().clamp(limits.min, limits.max).to(dtype)
    x, special = x.round(), torch.rand_like(x)
    for share, value in ((0.04, torch.nan), (0.08, torch.inf), (0.12, -torch.inf), (0.16, -0.0)):
        x[(special > share - 0.04) & (special < share)] = value
    return x.to(dtype)


def _different(results: dict[str, Tensor], expected: dict[str, Tensor]) -> Iterator[str]:
    for name, tensor in results.items():
        unequal = _bits(tensor) != _bits(expected[name])
        if unequal.any():
            gap = float((tensor - expected[name]).abs().max())
            yield f"{int(unequal.sum()):,} numbers of {name} have other bits, off by up to {gap:.1e}"


def _references(kernel: Kernel, samples: list[_Samples], dtype: torch.dtype) -> dict[str, Tensor]:
    return _joined(_run_reference(kernel, s, dtype) for s in samples)


def _far(
    results: dict[str, Tensor], reference_in: Callable[[torch.dtype], dict[str, Tensor]]
) -> Iterator[str]:
    """Yield results that are off the reference in float64 by more than the reference in float32 explains."""
    expected = reference_in(torch.float64)
    errors = {name: _error(tensor, expected[name]) for name, tensor in results.items()}
    if all(error <= TOLERANCE for error in errors.values()):
        return
    in_float32 = reference_in(torch.float32)
    for name, error in errors.items():
        float32_error = _error(in_float32[name], expected[name])
        if not error <= max(TOLERANCE, TIMES_FLOAT32 * float32_error):  # true of NaN too
            place, found, right = _first_wrong(results[name], expected[name])
            yield (
                f"{name} off by {error:.1e} of the largest, torch in float32 by {float32_error:.1e}; "
                f"first at {place}: {found:g} for {right:g}"
            )


def _first_wrong(result: Tensor, expected: Tensor) -> tuple[tuple[int, ...], float, float]:
    """Return the first entry that is further off than the tolerance, as its place and both numbers."""
    near = (result - expected).abs() <= TOLERANCE * expected.abs().max().clamp_min(1e-6)
    place = tuple((~near).nonzero()[0].tolist())
    return place, float(result[place]), float(expected[place])


def _error(result: Tensor, expected: Tensor) -> float:
    return float((result - expected).abs().max() / expected.abs().max().clamp_min(1e-6))


def _bits(t: Tensor) -> Tensor:
    bits = {torch.float32: torch.int32, torch.float64: torch.int64}.get(t.dtype)
    return t if bits is None else t.view(bits)


# ---------------------------------------------------------------------------------- ways to launch


def check_autograd(subject: Subject, batch: int) -> Iterator[str]:
    """Check the operator's methods: autograd runs their backward pass in another thread."""
    kernel, samples, expected = _sample_run(subject, batch)
    x, steepness = samples.x.clone().requires_grad_(), torch.tensor(STEEPNESS, device=DEVICE)
    outputs = subject.sorter.sort_with_permutation(x, steepness)
    (x_grad,) = torch.autograd.grad(outputs, x, (samples.values_grad, samples.routed_grad))
    yield from _different(_named(outputs[0].detach(), outputs[1].detach(), x_grad, None, None), expected)
    target = samples.x.argsort(-1).argsort(-1)
    loss = subject.sorter.cross_entropy(x, target, steepness)
    (loss_grad,) = torch.autograd.grad(loss, x)
    losses = replace(
        samples,
        routing="cross_entropy",
        payload=target,
        values_grad=torch.zeros_like(x),
        routed_grad=torch.full((batch,), 1 / batch, device=DEVICE),
    )

    def reference_in(dtype: torch.dtype) -> dict[str, Tensor]:
        run = _run_reference(kernel, losses, dtype)
        return {"the loss": run["the routed output"].mean(), "its gradient": run["the gradient of x"]}

    yield from _far({"the loss": loss.detach(), "its gradient": loss_grad}, reference_in)


def check_streams(subject: Subject, batch: int) -> Iterator[str]:
    """Check calls on several streams at once."""
    kernel, samples, expected = _sample_run(subject, batch)
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]  # type: ignore[no-untyped-call]
    results = []
    for stream in streams:
        with torch.cuda.stream(stream):
            results.append(_run(kernel, samples))
    torch.cuda.synchronize()
    for number, run in enumerate(results):
        yield from (f"stream {number}: {problem}" for problem in _different(run, expected))


def check_thread(subject: Subject, batch: int) -> Iterator[str]:
    """Check a call in a thread without earlier calls of CUDA."""
    kernel, samples, expected = _sample_run(subject, batch)
    results: list[dict[str, Tensor] | Exception] = []

    def run() -> None:
        try:
            results.append(_run(kernel, samples))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(results[0], Exception):
        raise results[0]
    yield from _different(results[0], expected)


def check_strides(subject: Subject, batch: int) -> Iterator[str]:
    """Check inputs and gradients that are expanded, or contiguous along another axis than the last."""
    kernel, samples, _ = _sample_run(subject, batch)
    assert samples.routed_grad is not None
    contiguous = replace(samples, values_grad=samples.values_grad[:1].repeat(batch, 1))
    strided = replace(
        contiguous,
        x=samples.x.t().contiguous().t(),
        steepness=samples.steepness[:1].expand(batch),
        values_grad=samples.values_grad[:1].expand(batch, -1),
        routed_grad=samples.routed_grad.transpose(1, 2).contiguous().transpose(1, 2),
    )
    yield from _different(_run(kernel, strided), _run(kernel, contiguous))


def check_graph(subject: Subject, batch: int) -> Iterator[str]:
    """Check a CUDA graph whose capture has the first backward pass of its program.

    Before it only the forward pass runs: setup of the first backward pass would be in the capture.
    """
    kernel = subject.sorter.kernel
    torch.manual_seed(0)
    samples = _draw("permutation", batch, subject.n)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(side):
        cuda.relax(Call.of(samples.x, samples.steepness, None, samples.routing, kernel.spec))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = _run(kernel, samples)
    # The replay has other numbers than the capture.
    samples.x.copy_(torch.randn_like(samples.x))
    graph.replay()
    torch.cuda.synchronize()
    yield from _different(results, _run(kernel, samples))


def _sample_run(subject: Subject, batch: int) -> tuple[Kernel, _Samples, dict[str, Tensor]]:
    kernel = subject.sorter.kernel
    torch.manual_seed(0)
    samples = _draw("permutation", batch, subject.n)
    expected = _run(kernel, samples)
    torch.cuda.synchronize()
    return kernel, samples, expected

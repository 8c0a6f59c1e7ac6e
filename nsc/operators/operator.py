"""What operators of all compiled networks share: their facts, checks of what users pass, the way to torch."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nsc.arguments import real, shown
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.checks import RANGES, bad_steepness
from nsc.runtime.dispatch import entries
from nsc.runtime.dispatch.ways import Way, way_of
from nsc.runtime.kernel import Kernel, register
from nsc.wording import argument, count

Steepness = float | Tensor | None


class Operator:
    """One compiled network, before what it is used for. Pickles, copies and compares by its package."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files: name to text, the manifest among them.

        Raises:
            PackageError: files that no `nsc compile` of this version wrote.
        """
        self._kernel = register(files)
        # Dtype of a tensor to the arithmetic type that serves it.
        self._serves = {
            getattr(torch, name): getattr(torch, real) for name, real in self._kernel.serves.items()
        }
        self._devices = frozenset([*self._kernel.sources, "meta"])

    @property
    def name(self) -> str:
        """The package's name."""
        return self._kernel.name

    @property
    def n(self) -> int:
        """Number of wires: the length of the last axis."""
        return self._kernel.n

    @property
    def size(self) -> int:
        """Number of comparators."""
        return self._kernel.size

    @property
    def depth(self) -> int:
        """Number of layers."""
        return self._kernel.depth

    @property
    def default_steepness(self) -> float:
        """2 × depth, the paper's choice (section 5.1); 2 for the network of one wire."""
        return 2.0 * max(1, self.depth)

    @property
    def kernel(self) -> Kernel:
        """The package behind the operator: its files, and its library once built."""
        return self._kernel

    def _run(
        self, method: str, x: Tensor, steepness: Steepness, payload: Tensor | None, routing: str
    ) -> tuple[Tensor, Tensor]:
        """Check, fold the leading shape into a batch, run, unfold.

        The payload of "transposed" and of "rows" is one for all samples; others lead with the shape of x.
        """
        self._check_tensor(method, "x", x)
        dtype = x.dtype
        if payload is not None and payload.dtype.is_floating_point:
            dtype = torch.promote_types(dtype, payload.dtype)
        keys = self._keys(method, x, dtype)
        weights = self._steepness(method, steepness, keys)
        if payload is not None:
            self._check_device(method, x, payload)
            if payload.dtype.is_floating_point:
                payload = payload.to(keys.dtype)
            if routing in ("transposed", "rows"):
                payload = payload.expand(keys.shape[0], *payload.shape)
            else:
                payload = payload.reshape(keys.shape[0], *payload.shape[x.dim() - 1 :])
        values, routed = entries.relax(self._kernel, keys, weights, payload, routing)
        values = unfolded(values, x.shape, x.dtype)
        if routed is None:
            return values, values
        return values, unfolded(routed, (*x.shape[:-1], *routed.shape[1:]), dtype)

    def _routed(self, x: Tensor, payload: Tensor, steepness: Steepness) -> Tensor:
        """Return what the wires carry of a payload, (…, n, m)."""
        self._check_tensor("route", "x", x)
        self._check_tensor("route", "payload", payload)
        if not payload.dtype.is_floating_point:
            raise OperandTypeError(
                f"{self.name}.route: payload must have a floating-point dtype, got {payload.dtype}: convert "
                "it with .float()"
            )
        if payload.shape[:-1] != x.shape:
            raise OperandError(
                f"{self.name}.route: payload must be (…, n, m) = {(*x.shape, 'm')} for x of shape "
                f"{tuple(x.shape)}, got {tuple(payload.shape)}"
            )
        return self._run("route", x, steepness, payload, "route")[1]

    def _keys(self, method: str, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Return x as (batch, n) in the arithmetic type that serves it, or a wider dtype."""
        self._check_tensor(method, "x", x)
        if x.dim() == 0 or x.shape[-1] != self.n:
            found = f"{count(x.shape[-1], 'value')} on its last axis" if x.dim() else "no axis"
            advice = f": compile one with {argument('n', x.shape[-1])}" if x.dim() and x.shape[-1] else ""
            raise OperandError(f"{self.name}.{method}: x has {found}, this op sorts {self.n}{advice}")
        if x.device.type not in self._devices:
            targets = ", ".join(self._kernel.sources)
            raise OperandError(
                f"{self.name}.{method}: x is on {x.device}, this op is compiled for {targets}: move x, or "
                f"compile with {argument('targets', ('cpu', 'cuda'))}"
            )
        real = self._serves.get(dtype or x.dtype)
        if real is None:
            wide = dtype or x.dtype
            wider = f"compile it with {argument('dtypes', ('float32', 'float64'))}"
            advice = wider if wide == torch.float64 else "convert it with .float()"
            raise OperandTypeError(
                f"{self.name}.{method}: dtype {wide} is not served, this op takes "
                f"{', '.join(self._kernel.serves)}: {advice}"
            )
        return _cast(x if x.dim() == 2 else x.reshape(-1, self.n), real)

    def _check_device(self, method: str, x: Tensor, other: Tensor) -> None:
        if other.device != x.device:
            raise OperandError(
                f"{self.name}.{method}: x is on {x.device} and the other tensor on "
                f"{other.device}: move one of them"
            )

    def _check_tensor(self, method: str, what: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise OperandTypeError(
                f"{self.name}.{method}: {what} must be a tensor, got {type(value).__name__}{_advice(value)}"
            )
        if value.layout is not torch.strided or value.is_nested or value.is_quantized:
            raise OperandTypeError(f"{self.name}.{method}: {what} must be a dense tensor, {_found(value)}")

    def _steepness(self, method: str, steepness: Steepness, keys: Tensor) -> Tensor:
        """Return the steepness as (batch,), one value seen batch times."""
        if steepness is None:
            steepness = self.default_steepness
        if isinstance(steepness, Tensor):
            self._check_tensor(method, "steepness", steepness)
            if steepness.dim() != 0 or steepness.dtype.is_complex or steepness.dtype == torch.bool:
                found = f"a tensor of {steepness.dtype} and shape {tuple(steepness.shape)}"
                kind = OperandError if steepness.dim() else OperandTypeError
                raise bad_steepness(f"{self.name}.{method}", found, keys.dtype, kind)
            if steepness.device != keys.device:
                raise OperandError(
                    f"{self.name}.{method}: x is on {keys.device} and steepness on "
                    f"{steepness.device}: move one of them"
                )
            if steepness.dtype != keys.dtype and not keys.is_cuda and way_of(steepness, keys) is Way.PLAIN:
                # Before a cast turns what the message should name into infinity or 0.
                self._check_number(method, steepness.item(), keys.dtype)
            value = steepness.to(keys.dtype)
        else:
            if torch.compiler.is_compiling() and isinstance(
                steepness, int | float | torch.SymFloat | torch.SymInt
            ):
                # A number that changes is a symbol here: it multiplies without being known, and the kernel
                # checks it as it checks a tensor.
                return (keys.new_ones(()) * steepness).expand(keys.shape[0])
            number = self._check_number(method, steepness, keys.dtype)
            if keys.is_cuda:  # a fill may be captured in a CUDA graph, a copy from the host may not
                return keys.new_full((1,), number).expand(keys.shape[0])
            if way_of(keys) is Way.PLAIN:
                return _constant(number, keys.dtype, keys.shape[0])
            value = torch.tensor(number, dtype=keys.dtype, device=keys.device)
        return value.expand(keys.shape[0])

    def _check_number(self, method: str, steepness: object, dtype: torch.dtype) -> float:
        """Return a steepness that is a number in the range of a dtype, or raise the error that names it."""
        number = real(steepness)
        lowest, highest = RANGES[dtype]
        if number is None or not lowest <= number <= highest:
            found = type(steepness).__name__ if number is None else shown(steepness)
            kind = OperandTypeError if number is None else OperandError
            raise bad_steepness(f"{self.name}.{method}", found, dtype, kind)
        return number

    def __fx_create_arg__(self, tracer: Any) -> Any:
        """Become an attribute of the module that torch.fx traces, where the graph finds it."""
        name = tracer.get_fresh_qualname("_sorting_network")
        setattr(tracer.root, name, self)
        return tracer.create_node("get_attr", name, (), {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: n={self.n}, size={self.size}, depth={self.depth})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and self._kernel.spec == other._kernel.spec

    def __hash__(self) -> int:
        return hash(self._kernel.spec)

    def __reduce__(self) -> tuple[type[Operator], tuple[dict[str, str]]]:
        return type(self), (dict(self._kernel.files),)


def _advice(value: Any) -> str:
    if isinstance(value, torch.fx.Proxy):
        return ": torch.fx traces nsc.nn.SortingNetwork, not this method; torch.export traces both"
    return ""


def _found(tensor: Tensor) -> str:
    """Return what a tensor is that has no dense memory, and how it gets some."""
    if tensor.is_nested:
        return (
            "got a nested one: pad it with torch.nested.to_padded_tensor, or sort the tensors of .unbind() "
            "one at a time"
        )
    if tensor.is_quantized:
        return "got a quantized one: convert it with .dequantize()"
    return f"got the layout {tensor.layout}: convert it with .to_dense()"


# A tensor's methods make a new tensor even where nothing changes, which takes as long as a small sort.
def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else x.to(dtype)


def unfolded(result: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return _cast(result if result.shape == shape else result.reshape(shape), dtype)


@functools.lru_cache(maxsize=64)
def _constant(value: float, dtype: torch.dtype, batch: int) -> Tensor:
    """Return a steepness seen `batch` times."""
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=dtype, device="cpu").expand(batch)

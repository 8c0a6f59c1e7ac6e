"""The base of all layers: an operator, its steepness, its dtype."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import torch
from torch import Tensor

from nsc.api import Options, compile
from nsc.arguments import flag, real, whole
from nsc.compiler.describe import Named, is_family
from nsc.errors import LoweringError, NetworkError, OperandError, OperandTypeError
from nsc.nn import functional
from nsc.operators.operands import k_of
from nsc.operators.operator import Attribute, Operator
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.sizes import AnyOperator, Sizes, most_of, serving
from nsc.wording import argument

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Methods whose last operands are scores and labels.
_LOSSES = ("loss", "cross_entropy", "binary_cross_entropy")
# A smaller loss may have no gradient because the scores are right.
_LEAST_LOSS = 0.01


class LayerOptions(Options, total=False):
    """Options of layers by name: how steep the network is, then options of `nsc.compile`."""

    steepness: float | None
    learnable: bool


class Layer(torch.nn.Module, Generic[AnyOperator]):
    """An operator, or sizes of it, and the steepness.

    If a layer is converted to another dtype, as by `.double()`, or moved to a GPU, as by `.to("cuda")`, its
    network is compiled for these tensors too. `.half()` and `.bfloat16()` round the steepness like every
    other value.
    """

    log_steepness: Tensor | None

    def __init__(
        self, operator: AnyOperator, steepness: float | None, learnable: bool, caller: str | None = None
    ) -> None:
        super().__init__()
        caller = caller or type(self).__name__
        is_parameter = flag("learnable", learnable, OperandTypeError)
        made = torch.empty(0)
        # Other layers that are made now have parameters of this dtype, on this device.
        self.operator = serving(operator, made.dtype, made.device)
        default = None if isinstance(operator, Sizes) else operator.default_steepness
        if steepness is None and default is None:
            if is_parameter:
                raise OperandError(
                    f"{caller}: a learnable steepness starts from a number, and each size has "
                    f"another default: add {argument('steepness', 10.0)}"
                )
            self.register_buffer("log_steepness", None)
            return
        start = default if steepness is None else real(steepness)
        if start is None or not 0 < start < math.inf:
            kind, value = (
                (OperandTypeError, type(steepness).__name__) if start is None else (OperandError, repr(start))
            )
            raise kind(f"{caller}: steepness must be a number, finite and above 0, got {value}")
        # FSDP2 takes parameters that have an axis, and a dtype in common.
        log = torch.tensor([math.log(start)], dtype=None if is_parameter else torch.float64)
        if is_parameter:
            self.log_steepness = torch.nn.Parameter(log)
        else:
            self.register_buffer("log_steepness", log)

    @property
    def steepness(self) -> Tensor | None:
        """The steepness as a 0-d tensor; None: 2 × depth of the network of a call's size."""
        return None if self.log_steepness is None else _steepness(self.log_steepness)

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        # A parameter of another type may be sharded. Torch 2.11 would gather it from all processes, but this
        # one may print alone.
        if self.log_steepness is None:
            return f"{self.operator!r}, steepness=2 × depth"
        plain = type(self.log_steepness) in (Tensor, torch.nn.Parameter)
        try:
            steepness = f"{self.steepness.item():g}" if plain and self.steepness is not None else "?"
        except RuntimeError:  # a tensor without values: on meta, or inside a transform
            steepness = "?"
        return f"{self.operator!r}, steepness={steepness}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Layer[AnyOperator]:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        # `.double()`, `.to(…)` and `.half()` of this module, and of modules that contain it, call `_apply`. A
        # new tensor shows their dtype, which a buffer need not have.
        made = fn(torch.empty(0))
        self.operator = serving(self.operator, made.dtype, made.device)
        return self

    def _relaxed(self, method: str, *operands: Any, **options: Any) -> Any:
        found = call(self.operator, method, self.log_steepness, *operands, **options)
        if method in _LOSSES:
            *_, scores, labels = operands
            watch(type(self).__name__, scores, labels, found)
        return found

    def _exact(self, method: str, x: Tensor, **options: Any) -> Any:
        return call(self.operator, method, None, x, **options)


class SortingLayer(Layer[Sorter | Sizes]):
    """A Sorter, or Sizes, and its steepness.

    A subclass that calls a function of `nsc.nn.functional` names this function, and its own attributes that
    the function takes by name. Arguments are as in `SortingNetwork`.
    """

    _function: ClassVar[str]
    _options: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        network: Sorter | Sizes | Named = "bitonic",
        n: int | None = None,
        *,
        steepness: float | None = None,
        learnable: bool = False,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(network, Selector):
            raise OperandTypeError(f"{network.name} is a Selector, which nsc.nn.SelectionNetwork takes")
        if isinstance(network, Sorter | Sizes):
            refuse_options(network, n=n, **options)
        elif n is None and (number := whole(network)) is not None:
            known = inspect.signature(type(self)).parameters
            ways = [argument(name, number) for name in ("k", "n") if name in known]
            raise NetworkError(
                f"{type(self).__name__}: a network is named by a family, a file, a Network or a list of "
                f"comparators, got int: pass {' or '.join(ways)} by name"
            )
        elif "select" in options:
            raise LoweringError(
                f"{type(self).__name__} sorts all values: nsc.nn.SelectionNetwork takes select"
            )
        elif n is None and is_family(network):
            network = Sizes(str(network), **options)
        else:
            network = compile(network, n, **options)
        super().__init__(network, steepness, learnable)

    def extra_repr(self) -> str:
        """Return what print shows of the module."""
        options = [f"{name}={getattr(self, name)!r}" for name in self._options]
        return ", ".join([super().extra_repr(), *options])

    def _k(self, k: object) -> int:
        return k_of(type(self).__name__, k, most_of(self.operator))

    def _call(self, *operands: Any, **entries: Any) -> Tensor:
        options = {name: getattr(self, name) for name in self._options}
        return call(  # type: ignore[no-any-return]
            self.operator, self._function, self.log_steepness, *operands, **options, **entries
        )


def _steepness(log_steepness: Tensor) -> Tensor:
    return log_steepness.exp().reshape(())


def call(
    operator: Attribute | Sizes, name: str, log_steepness: Tensor | None, *operands: Any, **options: Any
) -> Any:
    """Call a method of an operator or filter, or a function of `nsc.nn.functional` with the operator.

    For torch.fx it is one node, as methods cannot check the symbols of a trace; modules that call it wrap it.
    """
    is_function = name in functional.__all__
    function = partial(getattr(functional, name), operator) if is_function else getattr(operator, name)
    steepness = {} if log_steepness is None else {"steepness": _steepness(log_steepness)}
    return function(*operands, **steepness, **options)


torch.fx.wrap("call")


def refuse_options(network: Operator | Sizes, **options: object) -> None:
    """Raise OperandError if an operator, which is compiled already, comes with options of `nsc.compile`."""
    named = [name for name, value in options.items() if value is not None]
    if named:
        name = repr(network) if isinstance(network, Sizes) else network.name
        raise OperandError(f"{name} is compiled already: leave out {', '.join(named)}")


def watch(name: str, scores: object, labels: object, loss: Tensor) -> None:
    """Warn once if the gradient of scores is 0 and the loss is not, where values can be looked at.

    Scores that users made themselves are not watched: a hook would stay on them for many calls. Labels that
    are all equal, which leave nothing to learn, get no warning. `name` is the layer's.
    """
    if not isinstance(scores, Tensor) or scores.grad_fn is None or scores.is_cuda:
        return
    if way_of(scores) is not PLAIN or not isinstance(loss, Tensor):
        return
    value = loss.detach()

    def look(gradient: Tensor) -> None:
        is_flat = not gradient.any() and bool((value > _LEAST_LOSS).any())
        if is_flat and (not isinstance(labels, Tensor) or bool((labels != labels.flatten()[:1]).any())):
            _warn_of_flat(name)

    scores.register_hook(look)  # type: ignore[no-untyped-call]


@cache
def _warn_of_flat(name: str) -> None:
    warnings.warn(
        f"{name}: the gradient of a batch is exactly 0, and its loss is not: scores lie so far apart that "
        "the gradient underflows. Divide them by their spread, or pass a smaller steepness",
        RuntimeWarning,
        stacklevel=2,
    )

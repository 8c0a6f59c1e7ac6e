"""Watching: a layer warns once of a batch from which nothing can be learned."""

from __future__ import annotations

import warnings
from functools import cache

from torch import Tensor

from nsc.runtime.dispatch.ways import PLAIN, way_of

# A smaller loss may have no gradient because the scores are right.
_LEAST_LOSS = 0.01


def watch(name: str, scores: object, labels: object, loss: Tensor) -> None:
    """Warn once if the gradient of scores is 0 and the loss is not, where values can be looked at.

    Scores that users made themselves are not watched: they may keep what is registered for many calls. Nor
    are labels that are all equal, which leave nothing to learn.

    Args:
        name: of the layer.
        scores, labels: what it was called with.
        loss: what it returns.
    """
    if not isinstance(scores, Tensor) or scores.grad_fn is None or scores.is_cuda:
        return
    if way_of(scores) is not PLAIN or not isinstance(loss, Tensor):
        return
    value = loss.detach()

    def look(gradient: Tensor) -> None:
        if not gradient.any() and bool((value > _LEAST_LOSS).any()) and _differ(labels):
            _warn_of_flat(name)

    scores.register_hook(look)  # type: ignore[no-untyped-call]


def _differ(labels: object) -> bool:
    return not isinstance(labels, Tensor) or bool((labels != labels.flatten()[:1]).any())


@cache
def _warn_of_flat(name: str) -> None:
    warnings.warn(
        f"{name}: the gradient of a batch is exactly 0, and its loss is not: scores lie so far apart that "
        "the gradient underflows. Divide them by their spread, or pass a smaller steepness",
        RuntimeWarning,
        stacklevel=2,
    )

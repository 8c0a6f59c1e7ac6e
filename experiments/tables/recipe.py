"""The recipe to learn an order, beside the best other method, and what each part of it brings.

The paper's loss has logistic comparators, λ = 0.25, and takes the items in the order of the sample. The
recipe has Cauchy comparators, λ = 0, and 16 orders of the items: `nsc.nn.OrderLoss`.
"""

from __future__ import annotations

from experiments.tables.mnist import RECIPE, tuned
from experiments.tables.plan import PlannedPanel, Settings, Table, Temperatures, methods_by_size
from experiments.tables.protocol import ranking_differences

METHODS = (
    *("odd_even", "odd_even+orders=16", "odd_even+cauchy+art=0", "odd_even+cauchy+art=0+orders=4", RECIPE),
    *("odd_even+reciprocal+art=0+orders=16", "odd_even+optimal+art=0+orders=16"),
    *("bitonic+cauchy+art=0", "bitonic+cauchy+art=0+orders=16", "odd_even_merge+cauchy+art=0+orders=16"),
    "lap_sum",
)
SIZES = (5, 15, 32)


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    names, sizes = settings.methods or METHODS, settings.sizes or SIZES
    return (methods_by_size(settings, temperatures, names, sizes, ()),)


RECIPES = Table(
    name="recipe",
    title="Four-digit numbers: what each part of the recipe brings",
    source="table 1, extended",
    kinds=("digits",),
    data=lambda profile: (profile.digits,),
    metrics=("em5", "ew"),
    plan=_plan,
    tuning=lambda settings: tuned(settings, settings.methods or METHODS, settings.sizes or SIZES),
    differences=ranking_differences,
)

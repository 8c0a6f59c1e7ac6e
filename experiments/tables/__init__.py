"""Tables: one table from names to tables. A table says which runs it needs; `experiments.making` makes it."""

from __future__ import annotations

from experiments.tables.ablation import ABLATION
from experiments.tables.large import LARGE
from experiments.tables.mnist import MNIST
from experiments.tables.networks import NETWORKS
from experiments.tables.plan import Table
from experiments.tables.recipe import RECIPES
from experiments.tables.sensitivity import SENSITIVITY
from experiments.tables.svhn import SVHN
from experiments.tables.topk import TOPK

TABLES: dict[str, Table] = {
    table.name: table for table in (MNIST, NETWORKS, RECIPES, SVHN, LARGE, ABLATION, SENSITIVITY, TOPK)
}

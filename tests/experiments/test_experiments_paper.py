"""The paper's numbers: cells copied by hand from its tables, and what holds between tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments import methods, paper
from experiments.models import MODELS
from experiments.writing.quantities import METRICS
from experiments.writing.records import PaperNumber

FILE = Path(paper.__file__).with_suffix(".json")

Cell = tuple[str, str, str, str]

# Copied by eye, some from every table: its first, its last, and cells whose neighbours are alike.
COPIED: dict[Cell, tuple[float, float | None]] = {
    ("mnist", "stochastic_neural_sort", "3", "em"): (92.0, None),
    ("mnist", "neural_sort", "5", "em5"): (77.7, None),
    ("mnist", "optimal_transport", "15", "ew"): (74.2, None),
    ("mnist", "fast_rank", "15", "em"): (2.8, 0.2),
    ("mnist", "odd_even", "15", "em5"): (87.6, 0.5),
    ("networks", "odd_even", "2", "em"): (98.1, 0.3),
    ("networks", "odd_even", "8", "em"): (63.6, 11.6),
    ("networks", "bitonic", "32", "em5"): (85.4, 1.7),
    ("svhn", "neural_sort", "2", "em"): (90.1, 0.7),
    ("svhn", "optimal_transport", "2", "em5"): (25.9, 0.0),
    ("svhn", "fast_rank", "32", "em5"): (27.5, 9.1),
    ("svhn", "bitonic", "32", "em5"): (67.7, 3.6),
    ("large", "bitonic+art=0.25 30", "32", "em5"): (78.20, 2.35),
    ("large", "bitonic+art=0.4 40", "32", "em5"): (80.97, 2.03),
    ("large batch 4", "bitonic+art=0.4 30", "32", "em5"): (71.08, 1.67),
    ("large batch 4", "bitonic+art=0.4 40", "1024", "em5"): (81.15, 3.31),
    ("ablation", "odd_even mnist", "4 0", "ew"): (94.5, 0.3),
    ("ablation", "bitonic mnist", "32 0", "ew"): (62.8, 15.5),
    ("ablation", "bitonic svhn", "32 0.25", "ew"): (42.4, 3.5),
    ("topk", "softmax", "cifar10 vanilla", "top1"): (87.2, 0.2),
    ("topk", "topk:1", "cifar100 resnet18", "top1"): (63.3, 0.6),
    ("runtime gpu", "odd_even", "4", "seconds"): (69e-9, None),
    ("runtime gpu", "bitonic", "4", "bytes"): (840, None),
    ("runtime gpu", "bitonic", "1024", "bytes"): (549e6, None),
    ("runtime gpu", "neural_sort", "1024", "seconds"): (1.2e-3, None),
    ("runtime cpu", "odd_even", "1024", "seconds"): (31.0, None),
    ("runtime cpu", "bitonic", "128", "seconds"): (5e-3, None),
    ("runtime cpu", "neural_sort", "32", "seconds"): (13e-6, None),
    ("runtime cpu", "optimal_transport", "1024", "seconds"): (754e-3, None),
}


def cells() -> Iterator[tuple[Cell, PaperNumber]]:
    for table, rows in json.loads(FILE.read_text()).items():
        for row, columns in rows.items():
            for column, metrics in columns.items():
                for metric in metrics:
                    number = paper.number(table, row, column, metric)
                    assert number is not None
                    yield (table, row, column, metric), number


@pytest.mark.parametrize("cell", COPIED)
def test_cells_copied_by_hand(cell: Cell) -> None:
    assert paper.number(*cell) == PaperNumber(*COPIED[cell])


def test_no_cell_is_missing() -> None:
    counts: dict[str, int] = {}
    for (table, *_), _ in cells():
        counts[table] = counts.get(table, 0) + 1
    assert counts == {
        # 5 methods at 5 sizes: 2 metrics of the three copied rows, EM5 at n = 5 alone; 3 metrics of two rows.
        "mnist": 3 * (5 * 2 + 1) + 2 * 5 * 3,
        "networks": 2 * 5 * 3,
        "svhn": 5 * 5 * 3,
        "large": 5 * (6 + 1),
        "large batch 4": 5 * 6,
        "ablation": 4 * 4,
        "topk": 2 * 4,
        "runtime cpu": 5 * 5,
        "runtime gpu": (2 + 1) * 5 + 2 * 5,
    }


def test_every_name_is_known_and_every_number_possible() -> None:
    for (table, row, column, metric), number in cells():
        assert METRICS[metric].unit == "share" or table.startswith("runtime")
        if METRICS[metric].unit == "share":
            assert 0 <= number.value <= 100
        assert number.value >= 0
        assert number.deviation is None or number.deviation >= 0
        if table == "topk":
            assert column.split()[1] in MODELS
        else:
            assert methods.find(row.split()[0]).title


def test_tables_agree_where_they_overlap() -> None:
    """The ablation's λ = 0.25 is the main tables' λ. The columns n = 1024 are one run. EM = EW at n = 2."""
    for network in ("odd_even", "bitonic"):
        for n in ("4", "32"):
            for data, table in (("mnist", "networks"), ("svhn", "svhn")):
                main = paper.number(table, network, n, "ew")
                assert main is not None
                assert paper.number("ablation", f"{network} {data}", f"{n} 0.25", "ew") == main
    for steepness in ("30", "32.5", "35", "37.5", "40"):
        row = f"bitonic+art=0.4 {steepness}"
        same = paper.number("large", row, "1024", "em5")
        assert same is not None
        assert paper.number("large batch 4", row, "1024", "em5") == same
    for (table, row, column, metric), number in cells():
        if column == "2" and metric == "em":
            assert number == paper.number(table, row, column, "ew")
        if column == "5" and metric == "em":
            assert number == paper.number(table, row, column, "em5")

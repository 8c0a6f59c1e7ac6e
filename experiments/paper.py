"""The paper's numbers, every cell of its tables, as facts in paper.json.

Table by table, the rows and columns are

    mnist, networks     a method; n
    svhn                a method; n
    large               a method and its steepness, "bitonic+art=0.4 32.5"; n. As many images a step for all n
    large batch 4       the same, with 4 samples a step. At n = 1024 both are one run
    ablation            a network and its data, "odd_even svhn"; n and λ, "32 0.25"
    topk                "softmax" or "topk:1"; data and model, "cifar100 resnet18"
    runtime cpu         a method; n: forward and backward, with P for networks
    runtime gpu         the same; memory too

Methods have their names in `experiments.methods.METHODS`. The means, the best and the worst of table 3 follow
from its other rows. The two figures of sensitivity have no numbers in print.

Source: Petersen et al., Differentiable Sorting Networks for Scalable Sorting and Ranking Supervision, ICML
2021, tables 1 to 6; deviations: its supplementary material, where the column n = 9 of MNIST is headed n = 8.
The rows of NeuralSort and optimal transport on MNIST are copied there from Cuturi et al. and have none.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from experiments.writing.records import PaperNumber

_FILE = Path(__file__).with_name("paper.json")


def number(table: str, row: str, column: str, metric: str) -> PaperNumber | None:
    """Return a number of the paper; None if it prints none for this cell.

    Args:
        table, row, column: as the text above says.
        metric: "em", "ew", "em5" or "top1", in %; "seconds", a sample; "bytes", a sample, where the paper's
            KB is taken as 1,000 bytes.

    Raises:
        ValueError: no such table.

    >>> number("mnist", "odd_even", "15", "em5")
    PaperNumber(value=87.6, deviation=0.5)
    >>> number("mnist", "neural_sort", "15", "em5") is None
    True
    """
    numbers = _numbers()
    if table not in numbers:
        raise ValueError(f"the paper's tables are {', '.join(numbers)}; got {table!r}")
    cell = numbers[table].get(row, {}).get(column, {}).get(metric)
    return None if cell is None else PaperNumber(*cell)


@functools.cache
def _numbers() -> dict[str, dict[str, dict[str, dict[str, tuple[float, float | None]]]]]:
    """Return value and deviation by table, row, column and metric."""
    numbers: dict[str, dict[str, dict[str, dict[str, tuple[float, float | None]]]]]
    numbers = json.loads(_FILE.read_text(encoding="utf-8"))
    return numbers

"""Depth-first search for a 0-1 input that comes out wrong, in C++."""

from __future__ import annotations

import heapq

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import BudgetError, Integers, Question
from nsc.wording import argument

# A wire is a bit of a word.
MOST_WIRES = 64
# The limit without a time limit: about 20 seconds.
MOST_CASES = 1 << 26
# Cases between two looks at the clock, about a tenth of a second.
_CASES = 1 << 18


def depth_first(question: Question) -> Answer | None:
    """Run a network of up to 64 wires on undecided inputs, and tell cases apart where two of them meet.

    Cost: at most size · Fibonacci(n + 2) steps, and a second for the first build on a machine. In practice a
    table of finished cases leaves some thousands to some millions: the best known sorters up to 48 wires take
    less than a second.

    Source: Kuroda, A proposal of Gap Decrease Sorting Network, Transactions of the Information Processing
    Society of Japan 38, 1997, section 3.2.
    """
    n, budget = question.network.n, question.budget
    if budget.search is None or question.runs or n > MOST_WIRES:
        return None
    ranks = np.array(list(question.ranks.items()), dtype=np.int32)
    search = budget.search(n, _across(question.network), ranks)
    if search is None:
        return None
    cases = 0
    budget.check()
    while not search.look(_CASES):
        cases += _CASES
        budget.progress.count("cases of undecided inputs", cases)
        budget.check()
        if budget.deadline is None and cases >= MOST_CASES:
            raise BudgetError(f"{cases:,} cases: {argument('time_limit')} sets another limit")
    wrong = search.wrong_input()
    if wrong is not None:
        return Answer(failing=tuple(wrong >> wire & 1 for wire in range(n)))
    outcome = "sorted" if question.is_sort else "right"
    return Answer(proved=f"all 2^{n} 0-1 inputs come out {outcome}, in cases of undecided inputs")


def _across(network: Network) -> Integers:
    """Return the comparators in an order that goes from the first wires to the last ones.

    Of the comparators that may come next it takes the one whose higher wire is least. So few wires are both
    touched and unfinished at a time, and different cases soon leave them alike. For 41 wires that leaves one
    case in fifty of those in the order of layers.
    """
    pairs = network.comparators.tolist()
    # For each wire, its comparators with the next one on top.
    following: list[list[int]] = [[] for _ in range(network.n)]
    for index in range(len(pairs) - 1, -1, -1):
        for wire in pairs[index]:
            following[wire].append(index)

    def is_ready(index: int) -> bool:
        return all(following[wire][-1] == index for wire in pairs[index])

    heads = {stack[-1] for stack in following if stack}
    ready = sorted((max(pairs[head]), head) for head in heads if is_ready(head))
    order = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(pairs[index])
        for wire in pairs[index]:
            following[wire].pop()
        for head in {following[wire][-1] for wire in pairs[index] if following[wire]}:
            if is_ready(head):
                heapq.heappush(ready, (max(pairs[head]), head))
    return np.array(order, dtype=np.int32).reshape(-1, 2)

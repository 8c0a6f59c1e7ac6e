"""Search: networks of less cost, by random changes that a pool of 0-1 inputs does not refute.

The order of the files: goal (what is searched, what a network costs), patterns (0-1 inputs), rounds (so many
candidates on an island), islands (rounds side by side, and the state between them), starting (what a search
begins with, and what can be left out of it), engine (the library), workers (processes and clusters),
running (`nsc.search`).

A search tries millions of networks in a second. The network is data, so one library serves all searches. A
round of 2^18 candidates is a function of its input, so searches can be repeated and resumed, and a worker
that dies costs a round. Each result is proved once more, by `compiler/verify`.
"""

from nsc.study.search.goal import MOST_WIRES, Goal, Objective, first_layers
from nsc.study.search.islands import State, Workers, advance, state_of_json
from nsc.study.search.rounds import (
    Comparators,
    Effort,
    Outcome,
    Problem,
    Round,
    Standing,
    run_round,
)
from nsc.study.search.starting import from_network, from_nothing, known_network

__all__ = [
    "MOST_WIRES",
    "Comparators",
    "Effort",
    "Goal",
    "Objective",
    "Outcome",
    "Problem",
    "Round",
    "Standing",
    "State",
    "Workers",
    "advance",
    "first_layers",
    "from_network",
    "from_nothing",
    "known_network",
    "run_round",
    "state_of_json",
]

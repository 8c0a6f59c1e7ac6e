"""Islands: several searches of one goal, which exchange what they found at fixed rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from nsc.compiler.network import Network
from nsc.compiler.verify import Verdict, verify
from nsc.errors import NetworkError
from nsc.strict_json import read_json
from nsc.study.search.goal import Cost, Goal
from nsc.study.search.rounds import PROOF, Comparators, Outcome, Round, Standing, network_of, seed_of

# Rounds after which the island of the most cost takes the best network of all.
_EXCHANGE = 16
_FORMAT = "nsc-search/1"

# Does rounds, and returns their outcomes in the same order.
Workers = Callable[[Sequence[Round]], Sequence[Outcome]]


@dataclass(frozen=True)
class State:
    """A search between two rounds.

    Attributes:
        goal: what is searched.
        seed: of all random numbers.
        islands: where each island stands.
        found: patterns that refuted a network.
        rounds: how many were done, on each island.
        tried: candidates, on all islands.
    """

    goal: Goal
    seed: int
    islands: tuple[Standing, ...]
    found: tuple[int, ...] = ()
    rounds: int = 0
    tried: int = 0

    def cost(self, comparators: Comparators | None) -> Cost:
        """Return what the network of a list costs; without a list more than any."""
        return (1 << 62,) if comparators is None else self.goal.cost(network_of(self.goal, comparators))

    @property
    def best(self) -> Network | None:
        """The network of least cost of all islands, the first of several; None before there is one."""
        best = min((island.best for island in self.islands), key=self.cost)
        return None if best is None else network_of(self.goal, best)

    def to_json(self, asked: str) -> str:
        """Return the state as JSON.

        Args:
            asked: what the search was asked for, which `from_json` compares.
        """
        facts = asdict(replace(self, goal=None))  # type: ignore[arg-type]
        del facts["goal"]
        return json.dumps({"format": _FORMAT, "asked": asked, "prefix": self.goal.prefix, **facts})


def state_of_json(text: str, asked: str, goal: Goal) -> State:
    """Return the state that `to_json` wrote.

    Args:
        text: the JSON.
        asked: what this search is asked for.
        goal: what is searched; the prefix comes from the state.

    Raises:
        NetworkError: it is no state, or the state of another search.
    """
    try:
        facts = read_json(text)
        if facts["format"] != _FORMAT:
            raise ValueError(facts["format"])
        was = str(facts["asked"])
        goal = replace(goal, prefix=_pairs(facts["prefix"]) or ())
        islands = tuple(_standing(island, goal) for island in facts["islands"])
        found = tuple(_whole(number, 1 << goal.n) for number in facts["found"])
        numbers = [_whole(facts[name]) for name in ("seed", "rounds", "tried")]
    except (NetworkError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NetworkError(f"it does not hold the state of a search: {error!s:.80}") from None
    if was != asked:
        raise NetworkError(f"it holds the state of another search, {was}; this one is {asked}")
    return State(goal, numbers[0], islands, found, *numbers[1:])


def _standing(island: dict[str, Any], goal: Goal) -> Standing:
    lists = {name: _pairs(island[name]) for name in ("current", "best", "origin")}
    for comparators in dict.fromkeys(lists.values()):
        if comparators is not None:
            replace(goal, symmetric=False, prefix=comparators)  # which checks the form of the comparators
            network = network_of(goal, comparators)
            if verify(network, goal.wanted, PROOF).verdict is Verdict.REFUTED:
                raise ValueError(f"a network that lacks the property {goal.wanted.name}")
    return Standing(**lists, best_cost=_whole(island["best_cost"]), since=_whole(island["since"]))


def _pairs(listed: Sequence[Sequence[int]] | None) -> Comparators | None:
    return None if listed is None else tuple((_whole(lo), _whole(hi)) for lo, hi in listed)


def _whole(number: object, bound: int = 1 << 64) -> int:
    if type(number) is not int or not 0 <= number < bound:
        raise ValueError(f"{number!r} is no number below {bound}")
    return number


def advance(state: State, workers: Workers) -> State:
    """Do one round on each island; the outcome depends on the state alone."""
    outcomes = workers(
        [
            Round(state.goal, state.found, island, seed_of(state.seed, state.rounds, index))
            for index, island in enumerate(state.islands)
        ]
    )
    found = dict.fromkeys(state.found)
    for outcome in outcomes:
        found |= dict.fromkeys(outcome.found)
    after = replace(
        state,
        islands=tuple(outcome.standing for outcome in outcomes),
        found=tuple(found),
        rounds=state.rounds + 1,
        tried=state.tried + sum(outcome.tried for outcome in outcomes),
    )
    return after if after.rounds % _EXCHANGE else _exchanged(after)


def _exchanged(state: State) -> State:
    """Return the state after the island of the most cost took the best network."""
    costs = [state.cost(island.best) for island in state.islands]
    best, worst = costs.index(min(costs)), costs.index(max(costs))
    if costs[best] == costs[worst]:
        return state
    islands = list(state.islands)
    given = state.islands[best].best
    islands[worst] = replace(islands[worst], current=given, best=given, since=0)
    return replace(state, islands=tuple(islands))

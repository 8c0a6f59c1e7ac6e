"""Islands: several searches of one goal, which exchange what they found at fixed rounds."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.strict_json import read_json
from nsc.study.search.engine import Comparators, Standing
from nsc.study.search.goal import Cost, Goal
from nsc.study.search.rounds import Outcome, Round, seed_of

# Rounds after which the island of the most cost takes the best network of all.
_EXCHANGE = 16
_FORMAT = "nsc-search/2"

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
        return (1 << 62,) if comparators is None else self.goal.cost(self.goal.network(comparators))

    @property
    def best(self) -> Network | None:
        """The network of least cost of all islands, the first of several; None before there is one."""
        best = min((island.best for island in self.islands), key=self.cost)
        return None if best is None else self.goal.network(best)

    def to_json(self, asked: str) -> str:
        """Return the state as JSON with its own digest, so that no edited one is taken.

        Args:
            asked: what the search was asked for, which `state_of_json` compares.
        """
        facts: dict[str, Any] = {"format": _FORMAT, "asked": asked, "prefix": self.goal.prefix}
        facts |= {name: getattr(self, name) for name in ("seed", "found", "rounds", "tried")}
        facts["islands"] = [asdict(island) for island in self.islands]
        return json.dumps({**facts, "sha256": _digest(facts)})


def state_of_json(text: str, asked: str, goal: Goal) -> State:
    """Return the state that `to_json` wrote.

    Args:
        text: the JSON.
        asked: what this search is asked for.
        goal: what is searched; the prefix comes from the state.

    Raises:
        NetworkError: it is no state, an edited one, or the state of another search.
    """
    try:
        facts = read_json(text)
        if facts.pop("sha256") != _digest(facts) or facts.pop("format") != _FORMAT:
            raise ValueError("it was changed, or another version of nsc wrote it")
    except (NetworkError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NetworkError(f"it does not hold the state of a search: {error!s:.80}") from None
    was = facts.pop("asked")
    if was != asked:
        raise NetworkError(f"it holds the state of another search, {was}; this one is {asked}")
    facts = _tuples(facts)
    islands = tuple(Standing(**island) for island in facts.pop("islands"))
    return State(replace(goal, prefix=facts.pop("prefix")), islands=islands, **facts)


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _tuples(value: Any) -> Any:
    """Return JSON with tuples for its lists."""
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def advance(state: State, workers: Workers) -> State:
    """Do one round on each island; the outcome depends on the state alone."""
    outcomes = workers(
        [
            Round(state.goal, state.found, island, seed_of(state.seed, state.rounds, index))
            for index, island in enumerate(state.islands)
        ]
    )
    islands, refuting, tried = zip(*outcomes, strict=True)
    found = tuple(dict.fromkeys(itertools.chain(state.found, *refuting)))
    after = replace(
        state, islands=islands, found=found, rounds=state.rounds + 1, tried=state.tried + sum(tried)
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

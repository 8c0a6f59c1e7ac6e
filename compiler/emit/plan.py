"""Plan: what every language's template is given of a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nsc.compiler.naming import Head
from nsc.compiler.network import Network
from nsc.compiler.passes import live_halves
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule

# Most comparators that are straight-line code: 64 wires have at most 672 in the networks that nsc constructs.
STRAIGHT_LINE = 700


@dataclass(frozen=True)
class Operation:
    """A comparator, or the half of one that its results need.

    Attributes:
        lo, hi: its wires; the minimum goes to wire lo.
        has_minimum, has_maximum: whether anything needs them; one of them at least.
    """

    lo: int
    hi: int
    has_minimum: bool
    has_maximum: bool

    @property
    def written(self) -> tuple[int, ...]:
        """The wires that get a result which something needs."""
        return (self.lo,) * self.has_minimum + (self.hi,) * self.has_maximum

    @property
    def results(self) -> str:
        """The variables of the wires that get the minimum and the maximum; _ for one that nothing needs."""
        return f"{f'w{self.lo}' if self.has_minimum else '_'}, {f'w{self.hi}' if self.has_maximum else '_'}"


@dataclass(frozen=True)
class Plan:
    """A network that is written in a language.

    Attributes:
        request: what was compiled.
        head: the first lines of the text.
        schedule: the network as functions run it.
    """

    request: Request
    head: Head
    schedule: Schedule

    @property
    def title(self) -> str:
        """What the text is for."""
        return f"{'approximate' if self.request.off_by else 'exact'} {self.head.purpose}"

    @property
    def network(self) -> Network:
        return self.schedule.network

    @cached_property
    def ranks(self) -> tuple[int, ...] | None:
        """The rank of each result, 0 the smallest; None: all, the smallest first."""
        selected = self.request.outputs(self.network.n)
        return None if selected is None else tuple(selected.values())

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The wire of each result."""
        return tuple(self.request.outputs(self.network.n) or range(self.network.n))

    @cached_property
    def comparators(self) -> tuple[tuple[int, int], ...]:
        """The comparators in the order of the codelets, in which a processor holds few wires at a time."""
        return tuple(pair for codelet in self.schedule.codelets for pair in codelet.comparators())

    @property
    def origin(self) -> tuple[str, ...]:
        """Lines that say where the text comes from."""
        return (
            f"Made by: {self.head.command}",
            f"nsc:     {self.head.version}",
            f"Network: {self.network.counts}, sha256 {self.network.digest}",
            f"Proof:   {self.head.proof}",
            "Licence: MIT, Copyright (c) 2026 The nsc authors",
            "SPDX-License-Identifier: MIT",
        )

    @property
    def verb(self) -> str:
        """What functions do: sort or select."""
        return "sort" if self.ranks is None else "select"

    @property
    def is_one(self) -> bool:
        """Whether one value is selected."""
        return self.ranks is not None and len(self.ranks) == 1

    @property
    def results(self) -> str:
        """The results in words."""
        if self.ranks is None:
            return "all values, the smallest first"
        noun = "value of rank" if self.is_one else "values of ranks"
        off_by = self.request.off_by
        approximately = f", and ranks are at most {off_by} off" if off_by else ""
        return f"the {noun} {', '.join(map(str, self.ranks))}; 0 is the smallest{approximately}"

    @property
    def is_straight(self) -> bool:
        """Whether functions are straight-line code; a larger network is a table in a loop."""
        return self.network.size <= STRAIGHT_LINE

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of `comparators`, in their order."""
        operations, needed = [], set(self.outputs)
        for lo, hi in reversed(self.comparators):
            operations.append(Operation(lo, hi, lo in needed, hi in needed))
            needed |= {lo, hi}
        return tuple(reversed(operations))

    @cached_property
    def layers(self) -> tuple[tuple[Operation, ...], ...]:
        """The operations of each layer."""
        halves = iter(live_halves(self.network, self.outputs).tolist())
        return tuple(
            tuple(Operation(lo, hi, *next(halves)) for lo, hi in layer.tolist())
            for layer in self.network.layers()
        )

    @cached_property
    def live(self) -> tuple[tuple[int, ...], ...]:
        """The wires that are needed before each layer, and behind the last one."""
        live = [set(self.outputs)]
        for layer in reversed(self.layers):
            before = set(live[-1])
            for operation in layer:
                before -= set(operation.written)
                before |= {operation.lo, operation.hi}
            live.append(before)
        return tuple(tuple(sorted(wires)) for wires in reversed(live))

"""The cases of relaxed networks: works, networks and sizes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One work on one batch.

    Attributes:
        work: a key of `peers.WORKS`.
        network: a key of `networks.NETWORKS`.
        n: values per sample.
        batch: samples per call.
        alone: whether nsc is measured alone.
    """

    work: str
    network: str
    n: int
    batch: int
    alone: bool = False

    @property
    def name(self) -> str:
        """The name of the case, in tables and for --only."""
        return f"{self.work}, {self.network} {self.n}, batch {self.batch}"


P = "P + gradient"
LOSS = "cross entropy + gradient"
VALUES = "values + gradient"
LARGEST_ROWS = "rows of the top 8 + gradient"

# Batches keep a call of the slowest peer at a few seconds at most.
AGAINST_PEERS = (
    *(
        Case(P, "bitonic", n, batch)
        for n, batch in (
            (4, 100),
            (8, 100),
            (16, 100),
            (32, 100),
            (64, 16),
            (128, 16),
            (256, 4),
            (512, 2),
            (1024, 1),
            (2048, 1),
            (4096, 1),
        )
    ),
    Case(P, "odd_even", 32, 100),
    Case(P, "odd_even", 128, 4),
    *(
        Case(LOSS, "bitonic", n, batch)
        for n, batch in ((128, 16), (256, 4), (512, 2), (1024, 1), (2048, 1), (4096, 1))
    ),
    *(
        Case(VALUES, "bitonic", n, batch)
        for n, batch in (
            (16, 1000),
            (32, 1000),
            (64, 1000),
            (128, 1000),
            (256, 400),
            (512, 200),
            (1024, 100),
            (2048, 50),
            (4096, 25),
        )
    ),
    *(Case(LARGEST_ROWS, "bitonic", n, batch) for n, batch in ((128, 16), (1024, 1))),
)
# The kernels that are compared with the limit of their arithmetic, without torch's call.
AGAINST_LIMIT = (
    *(Case(P, "bitonic", n, batch) for n, batch in ((16, 100), (32, 100), (128, 16), (1024, 1))),
    *(Case(P, "odd_even", n, batch) for n, batch in ((32, 100), (128, 4))),
    Case(LOSS, "bitonic", 1024, 1),
)
# In these batches every thread has samples of its own; peers would take too long.
IN_BATCHES = (Case(P, "bitonic", 1024, 4, alone=True), Case(LOSS, "bitonic", 1024, 4, alone=True))
# A network that no peer has.
OF_FEWEST = (Case(LARGEST_ROWS, "best", 1024, 1, alone=True),)
# The others are compared with the first.
IRREGULAR = (
    Case(P, "bitonic", 64, 100, alone=True),
    *(Case(P, "merge_exchange", n, 100, alone=True) for n in (33, 47, 53, 60)),
    *(Case(P, "pairwise", n, 100, alone=True) for n in (47, 60)),
    *(Case(P, "random_merge", n, 100, alone=True) for n in (33, 47, 53, 60, 64)),
)

# The cases of a group take turns.
GROUPS = (*((case,) for case in (*AGAINST_PEERS, *OF_FEWEST, *IN_BATCHES)), IRREGULAR)

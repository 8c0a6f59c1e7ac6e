"""Search: networks of less cost, by random changes that a pool of 0-1 inputs does not refute.

The order of the files: goal (what is searched, what a network costs), patterns (0-1 inputs), engine (the
library), rounds (so many candidates on an island), islands (rounds side by side, and the state between them),
starting (what a search begins with, and what can be left out of it), workers (processes and clusters),
running (`nsc.search`).

A search tries millions of networks in a second. The network is data, so one library serves all searches. A
round of 2^18 candidates is a function of its input, so searches can be repeated and resumed, and a worker
that dies costs a round. Each result is proved once more, by `compiler/verify`.
"""

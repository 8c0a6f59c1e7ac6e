"""The runtime: builds generated source, loads it, and gives it to torch as differentiable operators.

It knows a package by its files alone and never looks at a network's structure. `build`, `kernel` and
`library` need no torch, so that `nsc compile` does not wait for its import.
"""

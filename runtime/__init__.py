"""The runtime: builds generated source, loads it, and gives it to torch as differentiable operators.

Knows a package only by its files; nothing here looks at a network's structure. `toolchain`, `cache`
and `kernel` need no torch, so that a cached `nsc compile` does not wait for its import.
"""

"""Contract: what the compiler writes into a package and the runtime reads from it, each fact in one place.

Both rooms import it, and it imports neither. What kernels know of it is rendered from it.
"""

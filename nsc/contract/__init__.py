"""Contract: the facts that the compiler writes into a package and the runtime reads, each in one place.

Compiler and runtime import the contract, and it imports neither. The facts that kernels state are rendered
from it.

A package is text, and describes itself. The manifest has the SHA-256 of every file. A source states the
facts that calls depend on (`nsc_facts`): wires, outputs, types, relaxation, the digests of network and
proof, launch parameters. The runtime compares these facts with the manifest when it loads a package. So it
refuses an edited source, manifest, network or proof, even with its digests made anew. A library is found by
the digest of its source and of all that its build depends on, so it need not state the facts again.
"""

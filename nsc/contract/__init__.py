"""Contract: what the compiler writes into a package and the runtime reads from it, each fact in one place.

Both rooms import it, and it imports neither. What kernels know of it is rendered from it.

A package is text, and says what it is. The manifest has the SHA-256 of every file. A source states the
facts that calls depend on (`nsc_facts`): wires, outputs, types, relaxation, the digests of network and
proof, launch parameters. The runtime compares them with the manifest when it loads a package. So it refuses
an edited source, manifest, network or proof, even with its digests made anew. A library is found by the
digest of its source and of all that its build depends on, so it need not state them again.
"""

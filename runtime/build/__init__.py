"""Build: compilers, and the cache of what they built.

A build is published whole. The key covers source, headers included, complete command, compiler version and
resolved instruction set. A build looks for the key, takes a lock, looks again, compiles in a private folder,
and publishes by rename; each hit checks the SHA-256. `-O2`, because the passes are written in vectors:
`-O3` takes twice as long for no gain.
"""

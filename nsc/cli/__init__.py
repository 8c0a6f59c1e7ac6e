"""The command line: commands that have much in common share a file.

Exit codes:

- 0: done, or proved
- 1: refuted, or not all is well
- 2: bad input, no toolchain, or output that cannot be written
- 3: unproved
- 130: interrupted
- 141: nobody reads the output any more, as after `nsc list | head -1`
"""

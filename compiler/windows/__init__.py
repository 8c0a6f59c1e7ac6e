"""Windows: filters that give the value of one rank of the window around each pixel.

The order of the files: merging (some ranks of two ascending lists), plan (the networks of a filter, and what
neighbouring windows share), fusing (which of them run together, and the plan that is best then), proving
(that it selects the rank), rendering, compiling.

A plan is a list of stages, each a network that runs at every place of a row; library/nsc/windows/window.h
says what neighbouring windows share. A window gets the plan whose operations, loads and stores cost least.
The proof is of all comparators that a window's values go through, without sharing.
"""

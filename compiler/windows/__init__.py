"""Windows: filters that give the value of one rank of the window around each pixel.

The order of the files: merging (some ranks of two ascending lists), plan (the
networks of a filter, and what neighbouring windows share), fusing (which of them run together, and the
plan that is best then), proving (that it selects the rank).

A plan is a list of stages, each a network that runs at every place of a row; library/nsc/windows/window.h
says what neighbouring windows share. A window gets the plan whose operations, loads and stores cost least.
A plan is proved twice: as the networks of whole windows, without sharing, and stage by stage, with the
lists that a stage reads presorted.
"""

from nsc.compiler.windows.fusing import Instance, Loop, fuse, operations, plan
from nsc.compiler.windows.plan import MOST_ROWS, Plan, Read, Stage
from nsc.compiler.windows.proving import FilterProof, WholeNetwork, prove_plan, whole_network
from nsc.contract.windows import MOST_VALUES, Window

__all__ = [
    "MOST_ROWS",
    "MOST_VALUES",
    "FilterProof",
    "Instance",
    "Loop",
    "Plan",
    "Read",
    "Stage",
    "WholeNetwork",
    "Window",
    "fuse",
    "operations",
    "plan",
    "prove_plan",
    "whole_network",
]

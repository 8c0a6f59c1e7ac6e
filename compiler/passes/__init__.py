"""Passes: functions from a network to a network, one a file."""

from nsc.compiler.passes.reflect import reflect
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.restrict import restrict
from nsc.compiler.passes.untangle import Untangled, untangle

__all__ = ["Untangled", "reflect", "relayer", "restrict", "untangle"]

"""Targets: from a schedule to source text.

The order of the files: records (the input of the templates, a file for each of their folders),
tables (what all targets share), a file per target, backends (the table of targets), module (a package's
Python module).
"""

from nsc.compiler.targets import c, cpp
from nsc.compiler.targets.backends import BACKENDS, Backend
from nsc.compiler.targets.interface import interface_text
from nsc.compiler.targets.module import module_text
from nsc.compiler.targets.records import Header

__all__ = ["BACKENDS", "Backend", "Header", "c", "cpp", "interface_text", "module_text"]

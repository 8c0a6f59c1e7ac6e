"""Targets: from a schedule to source text.

The order of the files: records (what templates are given), approximations (polynomials), tables (what all
targets print), a file per target, backends (the table of targets), module (the Python module of a package).
"""

from nsc.compiler.targets.backends import BACKENDS, Backend
from nsc.compiler.targets.module import module_text
from nsc.compiler.targets.records import Header

__all__ = ["BACKENDS", "Backend", "Header", "module_text"]

"""Records: what templates are given, one frozen record for each template.

Each field is a name in the template. `nsc.templates.fill` refuses a name that is no field, and a field
that no template uses.
"""

from nsc.compiler.targets.records.c import CHead, CHeader, CNetwork, CType, CWord
from nsc.compiler.targets.records.common import Constant, Head, Header, Real
from nsc.compiler.targets.records.exact import (
    ExactCudaKernel,
    ExactHead,
    ExactKernel,
    ExactNetwork,
    ExactSegment,
)
from nsc.compiler.targets.records.filters import FilterHead, FilterKernel, FilterLoop, FilterSizes
from nsc.compiler.targets.records.interface import Code, Interface
from nsc.compiler.targets.records.kernels import (
    CppKernel,
    CudaKernel,
    Direction,
    EngineKernel,
    KnownSpread,
    Network,
    Relaxation,
    Schedule,
    Step,
    StraightCode,
    StraightShape,
    Threads,
)
from nsc.compiler.targets.records.modules import (
    FilterFacts,
    FilterModule,
    Module,
    ModuleLoss,
    SelectModule,
    SortModule,
)

__all__ = [
    "CHead",
    "CHeader",
    "CNetwork",
    "CType",
    "CWord",
    "Code",
    "Constant",
    "CppKernel",
    "CudaKernel",
    "Direction",
    "EngineKernel",
    "ExactCudaKernel",
    "ExactHead",
    "ExactKernel",
    "ExactNetwork",
    "ExactSegment",
    "FilterFacts",
    "FilterHead",
    "FilterKernel",
    "FilterLoop",
    "FilterModule",
    "FilterSizes",
    "Head",
    "Header",
    "Interface",
    "KnownSpread",
    "Module",
    "ModuleLoss",
    "Network",
    "Real",
    "Relaxation",
    "Schedule",
    "SelectModule",
    "SortModule",
    "Step",
    "StraightCode",
    "StraightShape",
    "Threads",
]

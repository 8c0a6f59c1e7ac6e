"""Models without Python: the operators that an exported program calls, as one C++ source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from nsc.arguments import path_of
from nsc.compiler.package import write_file
from nsc.errors import LoweringError
from nsc.join.deploying import deployed_source, served_dtypes
from nsc.operators.filtering import find_filter
from nsc.operators.operator import Operator
from nsc.runtime.exact.windows import FilterKernel
from nsc.runtime.relaxed.kernel import Kernel, find_kernel

__all__ = ["deploy"]


def deploy(model: ExportedProgram | Operator, file: str | Path) -> Path:
    """Write the C++ source of the operators that a model calls, for programs of torch without Python.

    The source's first lines say how a library is built from it, with libtorch and no other file of nsc. A
    program loads the library, then the model, as AOTInductor packages it. The operators run on processors.
    With the same compiler and flags, results have the same bits as in Python.

    Args:
        model: a program that torch.export returned; or a Sorter or a Selector, for all models that call it.
        file: the file to write, NAME.cpp. A file that nsc wrote is replaced.

    Returns:
        The file.

    Raises:
        LoweringError: a model that calls no operator of nsc, or an operator without kernels for processors; a
            file name other than NAME.cpp; or a file that cannot be written, or that nsc did not write.

    Cost: a build takes 5 to 10 seconds a kernel. Beside a relaxed kernel an exact kernel is built for each
    type of values that the model sorts exactly. For an operator these are the types that its relaxed methods
    serve. torch sorts other types.

    >>> import tempfile
    >>> import nsc
    >>> model = nsc.nn.SortingNetwork("bitonic", 4)
    >>> program = torch.export.export(model, (torch.randn(2, 4),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     deploy(program, f"{folder}/sorting.cpp").read_text().splitlines()[0]
    '/* sorting.cpp: operators of nsc for programs of torch that have no Python.'
    """
    place = path_of("a deployed source", file, LoweringError)
    # The name appears in a command in the source's first lines.
    if not re.fullmatch(r"\w+\.cpp", place.name, re.ASCII):
        raise LoweringError(
            f"a deployed source is a file NAME.cpp, NAME of letters, digits and _, got {place.name!r}"
        )
    text = deployed_source(place.stem, "nsc.deploy", _kernels_of(model))
    return write_file(place, text)


def _kernels_of(model: object) -> dict[Kernel | FilterKernel, list[str]]:
    """Return the kernels that a model calls, with the types of values that it sorts or filters by each."""
    if isinstance(model, Operator):
        return {model.kernel: [*served_dtypes(model.kernel)]}
    if not isinstance(model, ExportedProgram):
        raise LoweringError(
            f"a model is deployed that torch.export.export returned, or a Sorter or a Selector, got {model!r}"
        )
    found: dict[Kernel | FilterKernel, list[str]] = {}
    for name, arguments in _calls(model):
        is_filter = name == "filter"
        kernel = (find_filter if is_filter else find_kernel)(arguments["kernel"])
        dtypes = found.setdefault(kernel, [])
        dtype = str(arguments["x"].meta["val"].dtype).removeprefix("torch.")
        if (is_filter or name.startswith("exact_")) and dtype not in dtypes:
            dtypes.append(dtype)
    if not found:
        raise LoweringError("the model calls no operator of nsc: there is nothing to deploy")
    return found


def _calls(program: ExportedProgram) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the arguments of each call of an operator of nsc."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            operator = node.target
            if isinstance(operator, torch._ops.OpOverload) and operator.namespace == "nsc":
                names = [argument.name for argument in operator._schema.arguments]
                yield operator._opname, dict(zip(names, node.args, strict=False)) | dict(node.kwargs)

"""What commands that write packages do with --deploy."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import click

from nsc.compiler.package import check_file
from nsc.contract.manifest import Manifest
from nsc.join.deploying import deployed_source
from nsc.runtime.relaxed.kernel import Kernel
from nsc.runtime.windows.kernel import FilterKernel

deploy_option = click.option(
    "--deploy",
    is_flag=True,
    help="Write OUT/NAME_torch.cpp too: the operators for programs of torch that have no Python.",
)

DEPLOYED = "{}: for programs of torch without Python; its first lines say how to build it"


def deployed_file(
    manifest: Manifest, kernel: Kernel | FilterKernel, dtypes: Collection[str], folder: Path
) -> tuple[str, str]:
    """Return the name and the text of a package's deployed source, which may be written.

    Args:
        manifest, kernel: of the package.
        dtypes: the types of values that it is built for; of a relaxed kernel, the exact one beside it.
        folder: where the package will be.

    Raises:
        LoweringError: the folder has such a file that nsc did not write.
    """
    stem = f"{manifest.name}_torch"
    name, text = f"{stem}.cpp", deployed_source(stem, f"{manifest.command} --deploy", {kernel: dtypes})
    check_file(name, text, folder)
    return name, text

"""Prebuilding: python -m nsc.prebuilding FOLDER writes the libraries of the package sortnets-kernels.

They are the engines of every sigmoid, which run any network, and the kernels of common networks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from nsc import library
from nsc.compiler.driver import compile_network
from nsc.compiler.relaxed import cpp
from nsc.compiler.relaxed.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.request import Request
from nsc.errors import NscError
from nsc.join.budget import budget_of
from nsc.runtime.build.prebuilt import LEVELS, file_name
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.engine import engine_name
from nsc.runtime.relaxed.kernel import Kernel
from nsc.version import VERSION

FAMILIES = ("bitonic", "odd_even")
SIZES = (4, 8, 16, 32, 64, 128)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Build engines and kernels for every level of x86-64 into FOLDER, which must exist."""
    try:
        written = [write(name, source, level, folder) for name, source in sources() for level in LEVELS]
    except NscError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{len(written)} libraries, {sum(path.stat().st_size for path in written) / 1e6:.1f} MB")


def sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each library."""
    for sigmoid in SIGMOIDS:
        yield engine_name(sigmoid), cpp.engine(Relaxation(sigmoid), "float32")
    for family in FAMILIES:
        for n in SIZES:
            request = Request(family, n, version=VERSION)
            kernel = Kernel(compile_network(request, budget_of()).package.files)
            yield kernel.name, kernel.sources["cpu"]


def write(name: str, source: str, level: str, folder: Path) -> Path:
    """Build a library for a level of x86-64 and return its file.

    Raises:
        ToolchainError, BuildError: as `Toolchain.compile`.
    """
    path = folder / file_name(name, source, VERSION, level)
    with tempfile.TemporaryDirectory() as work:
        text = Path(work) / f"{name}.cpp"
        text.write_text(library.expanded(source), encoding="utf-8")
        find_toolchain(relaxed=True).for_level(level).compile(text, path)
    return path


if __name__ == "__main__":
    main()

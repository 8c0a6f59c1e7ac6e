"""Prebuilding: python -m nsc.join.prebuilding FOLDER writes the libraries of the package sortnets-kernels.

The libraries are the engines, which run any network: one for each sigmoid, in float32, with the default λ.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from nsc import library
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.relaxed import cpp
from nsc.errors import NscError
from nsc.runtime.build.prebuilt import LEVELS, file_name
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.library import engine_name


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Build the engines for every level of x86-64 into FOLDER, which must exist."""
    try:
        written = [
            write(name, source, level, folder) for name, source in sources().items() for level in LEVELS
        ]
    except NscError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{len(written)} libraries, {sum(path.stat().st_size for path in written) / 1e6:.1f} MB")


def sources() -> dict[str, str]:
    """Return the source of each library by its name."""
    return {engine_name(sigmoid): cpp.engine(Relaxation(sigmoid), "float32") for sigmoid in SIGMOIDS}


def write(name: str, source: str, level: str, folder: Path) -> Path:
    """Build a library for a level of x86-64 and return its file.

    Raises:
        ToolchainError, BuildError: as `Toolchain.compile`.
    """
    path = folder / file_name(name, source, level)
    with tempfile.TemporaryDirectory() as work:
        text = Path(work) / f"{name}.cpp"
        text.write_text(library.expanded(source), encoding="utf-8")
        find_toolchain(relaxed=True).for_level(level).compile(text, path)
    return path


if __name__ == "__main__":
    main()

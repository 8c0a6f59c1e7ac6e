"""Prebuilding: python -m nsc.join.prebuilding PLATFORM FOLDER writes the libraries of sortnets-kernels.

The libraries are the engines, which run any network: one for each sigmoid and arithmetic type with the
default λ, and with λ = 0 those that `nsc.compat` takes.
ziglang builds them for all platforms on any machine.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from nsc import library
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.relaxed import cpp
from nsc.contract.interface import REALS
from nsc.errors import NscError
from nsc.runtime.build.prebuilt import LEVELS, file_name
from nsc.runtime.build.system import SYSTEMS, System
from nsc.runtime.build.toolchain import cross_toolchain
from nsc.runtime.relaxed.library import engine_name


@dataclass(frozen=True)
class Platform:
    """What a wheel is for.

    Attributes:
        target: as ziglang names it, with the least version of the system.
        machine: the architecture of its processors.
        system: its system.
    """

    target: str
    machine: str
    system: System


# By the names that wheels have for platforms.
PLATFORMS = {
    "manylinux_2_17_x86_64": Platform("x86_64-linux-gnu.2.17", "x86_64", SYSTEMS["linux"]),
    "manylinux_2_17_aarch64": Platform("aarch64-linux-gnu.2.17", "aarch64", SYSTEMS["linux"]),
    "macosx_11_0_x86_64": Platform("x86_64-macos.11.0", "x86_64", SYSTEMS["darwin"]),
    "macosx_11_0_arm64": Platform("aarch64-macos.11.0", "aarch64", SYSTEMS["darwin"]),
}


@click.command()
@click.argument("platform", type=click.Choice([*PLATFORMS]))
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(platform: str, folder: Path) -> None:
    """Build the engines for every level of a platform's processors into FOLDER, which must exist."""
    try:
        written = [
            write(name, source, PLATFORMS[platform], level, folder)
            for name, source in sources()
            for level in LEVELS[PLATFORMS[platform].machine]
        ]
    except NscError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{len(written)} libraries, {sum(path.stat().st_size for path in written) / 1e6:.1f} MB")


def sources() -> list[tuple[str, str]]:
    """Return the name and the source of each library."""
    relaxations = [*map(Relaxation, SIGMOIDS), Relaxation("logistic", 0), Relaxation("cauchy", 0)]
    return [(engine_name(each.sigmoid), cpp.engine(each, real)) for each in relaxations for real in REALS]


def write(name: str, source: str, platform: Platform, level: str, folder: Path) -> Path:
    """Build a library for a level of a platform's processors and return its file.

    Raises:
        BuildError: as `Toolchain.compile`, or no ziglang.
    """
    path = folder / file_name(name, source, level, platform.system)
    with tempfile.TemporaryDirectory() as work:
        text = Path(work) / f"{name}.cpp"
        text.write_text(library.expanded(source), encoding="utf-8")
        cross_toolchain(platform.target, level, platform.system).compile(text, path)
    return path


if __name__ == "__main__":
    main()

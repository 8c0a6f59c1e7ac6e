"""The command line: nsc compile, verify, convert, optimize, list, show, explain; a file per command or two.

Exit codes: 0 done, or the network sorts; 1 the network does not sort; 2 bad input or no toolchain;
3 unproved; 130 interrupted.
"""

from __future__ import annotations

from typing import Any

import click

import nsc
from nsc.cli.compiling import compile_command
from nsc.cli.converting import convert_command, optimize_command
from nsc.cli.shared import EXIT_CODES
from nsc.cli.showing import explain_command, list_command, show_command
from nsc.cli.verifying import verify_command
from nsc.compiler.verify import Verdict
from nsc.errors import NscError, UnprovedError, VerificationError

BAD_INPUT = 2
INTERRUPTED = 130


class _Group(click.Group):
    """Turns nsc's errors into one message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NscError as error:
            click.echo(f"nsc: {error}", err=True)
            ctx.exit(_exit_code(error))
        except KeyboardInterrupt:
            click.echo("nsc: interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _exit_code(error: NscError) -> int:
    if isinstance(error, VerificationError):
        return EXIT_CODES[Verdict.REFUTED]
    return EXIT_CODES[Verdict.UNPROVED] if isinstance(error, UnprovedError) else BAD_INPUT


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(nsc.__version__, prog_name="nsc")
def main() -> None:
    """The compiler for sorting networks: proved, differentiable, fast."""


for _command in (
    compile_command,
    verify_command,
    convert_command,
    optimize_command,
    list_command,
    show_command,
    explain_command,
):
    main.add_command(_command)

"""The group of all commands: its errors, notes and exit codes."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import click

from nsc.cli.caching import cache_command
from nsc.cli.compiling import compile_command, engine_command, filter_command
from nsc.cli.converting import convert_command, optimize_command
from nsc.cli.doctor import doctor_command
from nsc.cli.drawing import draw_command
from nsc.cli.emitting import emit_command
from nsc.cli.interrupts import INTERRUPTED, raise_instead
from nsc.cli.searching import search_command
from nsc.cli.shared import EXIT_CODES
from nsc.cli.showing import explain_command, list_command, records_command, show_command
from nsc.cli.verifying import verify_command
from nsc.compiler.verify import Verdict
from nsc.errors import NscError, UnprovedError, VerificationError
from nsc.version import VERSION
from nsc.wording import in_options

BAD_INPUT = 2
# Shells' exit code for a process that a closed pipe ended.
CLOSED_PIPE = 141


class _Group(click.Group):
    """Turns an error of nsc into one message and an exit code, and a warning into a note of one line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        # A locale may lack letters of a message: their numbers are printed, so that the message appears.
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().main(*args, **extra)
        except OSError as error:
            where = "the output" if error.filename is None else error.filename
            with contextlib.suppress(OSError):
                click.echo(f"nsc: cannot write {where}: {error.strerror}", err=True)
            _forget_output()
            sys.exit(BAD_INPUT)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            raise_instead()
            with in_options(_option_of), warnings.catch_warnings():
                warnings.showwarning = _show_note(warnings.showwarning)
                try:
                    return super().invoke(ctx)
                finally:
                    if sys.stdout is not None:
                        sys.stdout.flush()  # here an error still changes the exit code
        except NscError as error:
            click.echo(f"nsc: {error}", err=True)
            ctx.exit(_exit_code(error))
        except BrokenPipeError:  # click would end the process with 1, which says refuted
            _forget_output()
            ctx.exit(CLOSED_PIPE)
        except KeyboardInterrupt:
            click.echo("nsc: interrupted", err=True)
            ctx.exit(INTERRUPTED)


def _option_of(argument: str) -> str:
    """Return the running command's option for a Python argument of the same name."""
    command = click.get_current_context().command
    options = (option.opts[-1] for option in command.params if option.name == argument)
    return next(options, f"--{argument.replace('_', '-')}")


def _show_note(show: Callable[..., None]) -> Callable[..., None]:
    """Return a function that shows nsc's warnings as notes, and passes all other warnings to `show`."""

    def show_note(message: Warning | str, *place: Any, **others: Any) -> None:
        if str(message).startswith("nsc: "):
            click.echo(f"nsc: note: {str(message).removeprefix('nsc: ')}", err=True)
        else:
            show(message, *place, **others)

    return show_note


def _forget_output() -> None:
    """Drop output that could not be written; otherwise Python would try to write it again at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: NscError) -> int:
    if isinstance(error, VerificationError):
        return EXIT_CODES[Verdict.REFUTED]
    return EXIT_CODES[Verdict.UNPROVED] if isinstance(error, UnprovedError) else BAD_INPUT


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="nsc")
def main() -> None:
    """The compiler for sorting networks: proved, differentiable, fast."""


for _command in (
    compile_command,
    engine_command,
    filter_command,
    emit_command,
    verify_command,
    convert_command,
    optimize_command,
    search_command,
    list_command,
    records_command,
    show_command,
    explain_command,
    draw_command,
    cache_command,
    doctor_command,
):
    main.add_command(_command)

"""nsc doctor."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from nsc.doctor import Finding, findings

_MARKS = {True: "ok", False: "not ok"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor_command(as_json: bool) -> None:
    """Say what nsc finds on this machine, and test whether it works here: a page for a bug report.

    A network is proved and its kernels are built and compared with the reference. Each line is ok or not ok.
    Exit code: 0 if nothing is not ok.
    """
    found = []
    for finding in findings():
        found.append(finding)
        if not as_json:
            _print(finding)
    wrong = sum(finding.ok is False for finding in found)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        click.echo(f"not ok: {wrong} of {len(found)}" if wrong else "all is well")
    sys.exit(1 if wrong else 0)


def _print(finding: Finding) -> None:
    """Print a line at once: what comes next takes seconds."""
    start = f"{_MARKS[finding.ok]:6}  {finding.name:9}  "
    click.echo(start + finding.text.replace("\n", f"\n{' ' * len(start)}"))
    sys.stdout.flush()

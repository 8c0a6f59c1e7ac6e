"""The results on a device, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from benchmarks.gpu.building import Build, Form
from benchmarks.gpu.jobs import Outcome
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.timing import LaunchTime, Timing
from nsc.atomic import write_whole

FORMAT = "nsc-gpu-results/3"


@dataclass
class Results:
    """The results on a device, so far.

    Attributes:
        device: its name.
        outcomes: by the names of jobs.
        builds: by what was built.
    """

    device: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    builds: dict[Form, Build] = field(default_factory=dict)

    @property
    def limits(self) -> Limits | None:
        """The best rates of the device; None: not measured."""
        return self.outcomes["limits"].limits if "limits" in self.outcomes else None

    def failures(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the failures of some jobs, each with the job's name."""
        outcomes = (self.outcomes[name] for name in names if name in self.outcomes)
        return [(outcome.name, failure) for outcome in outcomes for failure in outcome.failures]

    def to_json(self) -> str:
        facts = {
            "format": FORMAT,
            "device": self.device,
            "builds": [asdict(build) for build in self.builds.values()],
            "outcomes": [asdict(outcome) for outcome in self.outcomes.values()],
        }
        return json.dumps(facts, indent=1) + "\n"

    @classmethod
    def of_file(cls, path: Path) -> Results:
        """Read a file; one of another version is refused with click.UsageError."""
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError) as error:
            raise click.UsageError(f"{path} holds no results of this version ({error}): remove it") from None

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Read what `to_json` wrote.

        Raises:
            ValueError: another format.
        """
        facts: dict[str, Any] = json.loads(text)
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise ValueError(f"not in the format {FORMAT}")
        builds = [Build(**build | {"form": Form(**build["form"])}) for build in facts["builds"]]
        outcomes = [_outcome(outcome) for outcome in facts["outcomes"]]
        return cls(
            facts["device"],
            {outcome.name: outcome for outcome in outcomes},
            {build.form: build for build in builds},
        )


def _outcome(facts: dict[str, Any]) -> Outcome:
    return Outcome(
        **facts
        | {
            "failures": tuple(facts["failures"]),
            "timings": tuple(Timing(**timing) for timing in facts["timings"]),
            "launches": tuple(LaunchTime(**launch) for launch in facts["launches"]),
            "limits": facts["limits"] and Limits(**facts["limits"]),
        }
    )


def path_of(folder: Path, device: str) -> Path:
    """Return the JSON file of a device's results; the report has the same name and ends in .md."""
    return folder / f"gpu-{re.sub(r'[^a-z0-9]+', '_', device.lower()).strip('_')}.json"


def write(path: Path, results: Results, report: str) -> list[Path]:
    """Write JSON and Markdown, each by a rename; return their paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = {path: results.to_json(), path.with_suffix(".md"): report}
    for file, text in contents.items():
        write_whole(file, text)
    return [*contents]

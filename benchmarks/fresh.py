"""Runs measurements that need a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def run_fresh(module: str, *arguments: object, env: Mapping[str, str]) -> Any:
    """Run `python -m MODULE ARGUMENTS`, and return the value that it prints as JSON.

    Raises:
        subprocess.CalledProcessError: the process failed; its message is on stderr.
    """
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **env},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(process.stdout)

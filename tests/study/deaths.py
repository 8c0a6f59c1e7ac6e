"""Work that kills its process. A new process imports this file, so it imports little."""

import os
import signal
from pathlib import Path


def die_once(path: str) -> str:
    """Kill this process the first time that it gets a path whose name is "dies"; return the path."""
    if Path(path).name == "dies" and not Path(path).exists():
        Path(path).touch()
        die(path)
    return path


def die(_: object) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)

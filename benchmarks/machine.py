"""The machine and the versions, for the heads of reports."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch

import nsc


@cache
def machine(device: str = "cpu") -> str:
    """Return the processor, or the device, and the versions of torch, Python and nsc."""
    if torch.device(device).type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = platform.processor() or platform.machine()
        cpuinfo = Path("/proc/cpuinfo")
        if cpuinfo.exists():
            models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
            name = f"{len(models)} × {models[0].partition(': ')[2]}" if models else name
    return f"{name}, torch {torch.__version__}, Python {platform.python_version()}, nsc {nsc.__version__}"

"""The machine and the versions, for the heads of reports and the names of their files."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

import torch

import nsc

_CPUINFO = Path("/proc/cpuinfo")


@cache
def machine(device: str = "cpu") -> str:
    """Return the processor, or the device, and the versions of torch, Python and nsc."""
    name = torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else processors()
    return f"{name}, torch {torch.__version__}, Python {platform.python_version()}, nsc {nsc.__version__}"


@cache
def processors() -> str:
    """Return the processors and how many there are, such as `2 × AMD EPYC`."""
    models = _stated("model name")
    return f"{len(models)} × {models[0]}" if models else platform.processor() or platform.machine()


def file_name(registers: str) -> str:
    """Return how the names of this machine's results begin, where kernels use a set of registers."""
    model = (_stated("model name") or [platform.processor() or platform.machine()])[0]
    number = (_stated("model") or [""])[0]
    return f"cpu-{processor_slug(model, number)}-{registers}"


def processor_slug(model: str, number: str) -> str:
    """Return a short name of a processor for names of files.

    Args:
        model: its name.
        number: the number of its model, which stands for a name that a virtual machine hides.

    >>> processor_slug("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", "106")
    'intel-xeon-platinum-8375c'
    >>> processor_slug("AMD EPYC 7763 64-Core Processor", "1"), processor_slug("AMD EPYC", "1")
    ('amd-epyc-7763', 'amd-epyc-model-1')
    """
    name = re.sub(r"\((R|TM)\)|@.*", " ", model).lower()
    words = [w for w in re.findall(r"[a-z0-9-]+", name) if w not in ("cpu", "processor") and "-core" not in w]
    if number and not any(map(str.isdigit, name)):
        words += ["model", number]
    return "-".join(words)


@cache
def _stated(key: str) -> list[str]:
    """Return what the system states of every processor under a key; nothing where it does not."""
    if not _CPUINFO.exists():
        return []
    lines = (line.partition(":") for line in _CPUINFO.read_text().splitlines())
    return [value.strip() for name, _, value in lines if name.strip() == key]

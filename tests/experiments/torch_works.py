"""Work that imports torch, as a training does."""

from __future__ import annotations

import torch

from experiments.run import Result, Run


def torch_threads(run: Run) -> Result:
    """Return the threads of torch, as the machine."""
    return Result(run, "", {}, {}, (), (), 0.0, str(torch.get_num_threads()))

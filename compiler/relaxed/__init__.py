"""Relaxed: from a schedule to the package of a differentiable kernel, its texts for processors and GPUs."""

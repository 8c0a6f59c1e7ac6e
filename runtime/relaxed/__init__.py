"""Relaxed: packages of differentiable kernels, loaded, built and called."""

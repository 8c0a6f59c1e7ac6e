"""Schedule: a network cut into the pieces that kernels run."""

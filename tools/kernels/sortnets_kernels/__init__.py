"""Libraries of nsc that were built beforehand; nsc finds them here. The module has no functions."""

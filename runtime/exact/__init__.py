"""Exact: kernels that sort, or select, numbers of any type, built and called."""

"""Exact: kernels that sort or select numbers of any type, and filters of images, built and called."""

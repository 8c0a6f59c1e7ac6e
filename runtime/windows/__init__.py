"""Windows: kernels of filters, built and called."""

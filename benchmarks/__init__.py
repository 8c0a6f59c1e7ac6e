"""Measured speed and memory, against peers in the same run: `python -m benchmarks`.

networks and cases list what is measured, peers who does it; exact has both for exact sorting of arrays.
measure, kernels, memory, building, arithmetic and bandwidth measure, growth compares with the arithmetic
limit, report, tables and pictures show the results. Results are named by the machine and by the registers
that kernels are built for. Each measurement of memory and of a build has a process of its own; this process
measures everything else. accuracy, autocast, engine, proofs, windows and xarray are commands.

Peers take part where they can be imported; the `bench` extra has them, but for torchsort: its build needs
torch to be installed already, and a whole CUDA toolkit if it finds nvcc. To add it:

    PATH=/usr/bin:/bin .venv/bin/python -m pip install --no-build-isolation --no-deps torchsort
"""

"""Measured speed and memory, against peers in the same run: `python -m benchmarks`.

networks and cases say what is measured, peers who does it, measure, memory, building and arithmetic measure,
growth compares with the arithmetic limit, report and pictures show it. Everything above the cases is measured
by this process, memory and builds each by a process of their own.

torchsort takes part where it can be imported. It is no part of the `bench` extra, because its build needs
torch to be installed already and wants a whole CUDA toolkit as soon as it finds nvcc. To add it:

    PATH=/usr/bin:/bin .venv/bin/python -m pip install --no-build-isolation --no-deps torchsort
"""

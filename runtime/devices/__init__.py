"""Devices: what runs a kernel: threads of the CPU, and modules and launches of CUDA."""

"""Devices: what runs an operator on the tensors of a device."""

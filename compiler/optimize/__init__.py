"""Optimize: smaller networks with the same property."""

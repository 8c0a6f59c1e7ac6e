"""Operators: compiled networks as torch users call them."""

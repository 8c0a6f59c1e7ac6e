"""Targets: from a schedule to source text."""

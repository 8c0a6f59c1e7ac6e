"""Dispatch: the ways from a call to a kernel."""

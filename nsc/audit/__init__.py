"""Audit: what a package claims, and what its built kernel does."""

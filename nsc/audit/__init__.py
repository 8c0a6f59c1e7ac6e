"""Audit: the claims of a package, and checks of its built kernel against them."""

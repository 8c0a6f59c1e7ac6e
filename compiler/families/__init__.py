"""Families: functions from a number of wires to a network, and networks that are known."""

from nsc.compiler.families.classic import FAMILIES, family_network, merge_exchange

__all__ = ["FAMILIES", "family_network", "merge_exchange"]

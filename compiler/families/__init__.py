"""Families: functions from a number of wires to a network, and networks that are known."""

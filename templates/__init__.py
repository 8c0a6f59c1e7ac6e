"""Jinja sources. They lay out what Python has decided: no arithmetic, no decisions."""

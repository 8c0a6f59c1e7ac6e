"""Passes: functions from a network to a network, one a file; each says which property it keeps."""

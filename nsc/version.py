"""The version of nsc, which packages, built kernels and messages name."""

VERSION = "0.1.0"

"""Layers for torch models: an operator with its steepness, and a loss of classification."""

from nsc.nn.networks import SelectionNetwork, SortingNetwork
from nsc.nn.top_k import TopKCrossEntropy

__all__ = ["SelectionNetwork", "SortingNetwork", "TopKCrossEntropy"]

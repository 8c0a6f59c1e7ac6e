"""Layers for torch models: operators with their steepness, a loss of classification, filters of images."""

from nsc.errors import torch_needed

with torch_needed("nsc.nn"):
    from nsc.nn.filters import MedianFilter2d, RankFilter2d
    from nsc.nn.networks import SelectionNetwork, SortingNetwork
    from nsc.nn.top_k import TopKCrossEntropy

__all__ = ["MedianFilter2d", "RankFilter2d", "SelectionNetwork", "SortingNetwork", "TopKCrossEntropy"]

"""Layers for torch models: operators with their steepness, losses, statistics, filters of images."""

from nsc.errors import torch_needed

with torch_needed("nsc.nn"):
    from nsc.nn import functional
    from nsc.nn.filters import MedianFilter2d, RankFilter2d
    from nsc.nn.networks import SelectionNetwork, SortingNetwork
    from nsc.nn.ranking import ListRankLoss, MRRLoss, NDCGLoss, OrderLoss, PrecisionAtK, SpearmanLoss
    from nsc.nn.statistics import Median, MedianAbsoluteDeviation, Quantile, SoftTopK, TrimmedMean
    from nsc.nn.top_k import TopKCrossEntropy

__all__ = [
    "ListRankLoss",
    "MRRLoss",
    "Median",
    "MedianAbsoluteDeviation",
    "MedianFilter2d",
    "NDCGLoss",
    "OrderLoss",
    "PrecisionAtK",
    "Quantile",
    "RankFilter2d",
    "SelectionNetwork",
    "SoftTopK",
    "SortingNetwork",
    "SpearmanLoss",
    "TopKCrossEntropy",
    "TrimmedMean",
    "functional",
]

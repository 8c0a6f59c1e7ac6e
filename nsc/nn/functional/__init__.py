"""Losses and statistics as functions of an operator, a `Sorter` or `Sizes`; `nsc.nn` has each as a module."""

from nsc.nn.functional.ranking import (
    list_rank_loss,
    mrr_loss,
    ndcg_loss,
    order_loss,
    precision_at_k_loss,
    spearman_loss,
)
from nsc.nn.functional.statistics import median, median_absolute_deviation, quantile, soft_top_k, trimmed_mean

__all__ = [
    "list_rank_loss",
    "median",
    "median_absolute_deviation",
    "mrr_loss",
    "ndcg_loss",
    "order_loss",
    "precision_at_k_loss",
    "quantile",
    "soft_top_k",
    "spearman_loss",
    "trimmed_mean",
]

"""Statistics: pure functions over arrays. Nothing here knows what a flow or a table is."""

from __future__ import annotations

from tcplab.analysis.statistics.autocorrelation import BatchMeans, autocorrelation, batch_means, mser5
from tcplab.analysis.statistics.comparison import Comparison, cliff_delta, hedges_g, holm, mann_whitney, welch
from tcplab.analysis.statistics.fairness import (
    Episode,
    convergence_time,
    harm,
    jain,
    jain_over_time,
    max_min,
    share_of_fair_rate,
    starvation_episodes,
)
from tcplab.analysis.statistics.intervals import (
    DETERMINISTIC,
    Interval,
    bootstrap_interval,
    deterministic,
    mean_interval,
    median_interval,
)
from tcplab.analysis.statistics.outliers import outliers
from tcplab.analysis.statistics.quantiles import empirical_cdf, weighted_quantiles
from tcplab.analysis.statistics.reliability import Grade, coefficient_of_variation, grade

__all__ = [
    "DETERMINISTIC",
    "BatchMeans",
    "Comparison",
    "Episode",
    "Grade",
    "Interval",
    "autocorrelation",
    "batch_means",
    "bootstrap_interval",
    "cliff_delta",
    "coefficient_of_variation",
    "convergence_time",
    "deterministic",
    "empirical_cdf",
    "grade",
    "harm",
    "hedges_g",
    "holm",
    "jain",
    "jain_over_time",
    "mann_whitney",
    "max_min",
    "mean_interval",
    "median_interval",
    "mser5",
    "outliers",
    "share_of_fair_rate",
    "starvation_episodes",
    "weighted_quantiles",
    "welch",
]

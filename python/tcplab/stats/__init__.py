"""Statistics: pure functions over arrays. Nothing here knows what a flow or a table is."""

from __future__ import annotations

from tcplab.stats.comparison import Comparison, cliff_delta, hedges_g, holm, mann_whitney, welch
from tcplab.stats.fairness import (
    Episode,
    convergence_time,
    jain,
    jain_over_time,
    share_of_fair_rate,
    starvation_episodes,
)
from tcplab.stats.intervals import (
    DETERMINISTIC,
    Interval,
    bootstrap_interval,
    deterministic,
    mean_interval,
    median_interval,
)
from tcplab.stats.outliers import outliers
from tcplab.stats.quantiles import weighted_quantiles
from tcplab.stats.reliability import Grade, coefficient_of_variation, grade
from tcplab.stats.series import BatchMeans, autocorrelation, batch_means, mser5

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
    "grade",
    "hedges_g",
    "holm",
    "jain",
    "jain_over_time",
    "mann_whitney",
    "mean_interval",
    "median_interval",
    "mser5",
    "outliers",
    "share_of_fair_rate",
    "starvation_episodes",
    "weighted_quantiles",
    "welch",
]

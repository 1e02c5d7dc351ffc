"""Figures: what they hold (model), what goes into them (timeseries, cdf), and how they are drawn."""

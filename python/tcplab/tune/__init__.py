"""Tuning: the best configuration for a goal, found by racing or by a sampler, and how sure that is."""

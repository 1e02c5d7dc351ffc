"""Studies: a scenario over a grid of parameters, with repetitions, statistics and expectations."""

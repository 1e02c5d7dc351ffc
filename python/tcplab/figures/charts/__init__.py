"""Charts of figures that are not over time: bars, curves, heatmaps, clouds; drawn by plotly or matplotlib."""

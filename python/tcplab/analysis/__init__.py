"""Pure functions over results: statistics, laws, steady state, sharing, limits, summaries, echoes."""

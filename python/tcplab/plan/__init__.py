"""A plan, read: paths, directions, its settings in words, its form as YAML."""

"""A plan, read: its types, paths, directions, its settings in words, its form as YAML."""

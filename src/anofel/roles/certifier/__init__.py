"""A certifier: looks at datasets, keeps one key for each, signs certificates."""

"""Real studies and users' own files: fetch, check against a schema, encode, digest."""

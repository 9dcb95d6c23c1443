"""The embedded node: one process, one directory, one HTTP API."""

"""Blocks and blobs on disk, for nodes and light clients."""

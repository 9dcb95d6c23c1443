"""Blobs by hash: stored whole, capped, given out with receipts, kept as long as the rules say."""

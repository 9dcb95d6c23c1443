"""Step 4 — local training: trainers, splits, metrics, predictions."""

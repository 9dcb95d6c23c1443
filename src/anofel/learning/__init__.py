"""Step 4 — local training: models, trainers, splits, and the integer model everyone agrees on."""

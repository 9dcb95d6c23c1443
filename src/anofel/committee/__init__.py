"""Committee encryption: sums of vectors that t of n aggregators open together, and nobody else."""

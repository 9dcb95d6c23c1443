"""The bulletin board: the one channel between the parties (AnoFel §4.1)."""

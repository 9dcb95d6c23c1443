"""Results for trackers of experiments, read from a public board or from a simulation's directory.

Whoever follows an experiment reads what everybody may read; no role knows a tracker, and no client logs to
one.
"""

"""Threshold keys on ristretto255: made together, handed on together.

A ``lattice`` committee makes 2049 at once (one per coefficient, one for the count); a committee of
another scheme makes the one for its count. The rounds of key generation are modules:
``round0_commit``, ``round1_deal``, ``round2_confirm``; ``key_generation`` joins them.
"""

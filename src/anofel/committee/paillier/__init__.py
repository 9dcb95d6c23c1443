"""The paper's scheme: threshold Paillier without a dealer, packed, every step provable.

GMP (LGPL) does the arithmetic, inside ``gmpy2``. ``docs/paillier.md`` has formulas and assumptions.
"""

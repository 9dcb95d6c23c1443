"""The arithmetic under ``paillier``: integers modulo N², sharing over the integers, packing, proofs."""

"""Key generation for ``paillier``, without a dealer, phase by phase.

====================  =====================  ==========================================================
phase                 module                 what happens
====================  =====================  ==========================================================
hello                 ``hello``              one-time sealing keys, commitments to the seeds
sieve-deal, -open     ``sieve``              residues of p and q that no small prime divides
modulus-deal, -open   ``modulus``            N = pq for a batch of candidates, p and q shared
first-test            ``biprimality``        one test of every candidate
final-tests, gcd      ``biprimality``        64 tests and gcd(N, p+q-1) = 1 for one candidate
key-deal, -reduce     ``derivation``         integer shares of a multiple of φ, at degree t-1
key-open              ``derivation``         θ, from a masked opening; verification keys
self-test, confirm    ``confirmation``       public test ciphertexts; the same key at everybody
====================  =====================  ==========================================================

``engine`` runs the phases, seals private parts, judges complaints and replays failed runs;
``paillier.key_generation`` puts them behind the committee's interface.
"""

"""Phase 2 of the paper, model training (§4.3.2): clients train and submit.

One module for each step; a step is a pure function from what a party holds to what it sends.
"""

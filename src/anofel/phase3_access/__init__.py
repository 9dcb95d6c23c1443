"""Phase 3 of the paper, model access (§4.3.3): committees open sums, owners update models.

One module for each step; a step is a pure function from what a party holds to what it sends.
"""

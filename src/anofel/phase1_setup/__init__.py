"""Phase 1 of the paper, setup (§4.3.1): certifiers, clients and committees become known to the board.

One module for each step; a step is a pure function from what a party holds to what it sends.
"""

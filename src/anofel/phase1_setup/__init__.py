"""Phase 1 of the paper, setup (§4.3.1): certifiers, clients and committees become known to the board.

One module for each step, from what a party holds to what it sends; a step knows no files, polls or retries.
What it reads and stores goes through ``anofel.board.interface``.
"""

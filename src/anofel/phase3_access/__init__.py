"""Phase 3 of the paper, model access (§4.3.3): committees open sums, owners update models.

One module for each step, from what a party holds to what it sends; a step knows no files, polls or retries.
What it reads and stores goes through ``anofel.board.interface``.
"""

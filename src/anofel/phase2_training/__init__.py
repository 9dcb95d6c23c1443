"""Phase 2 of the paper, model training (§4.3.2): clients train and submit.

One module for each step, from what a party holds to what it sends; a step knows no files, polls or retries.
What it reads and stores goes through ``anofel.board.interface``. ``step4_training_process`` is where a client
runs step 4, so that it can be stopped in time.
"""

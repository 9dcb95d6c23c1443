"""One validator of a replicated board: our state machine under CometBFT (``docs/replicated-board.md``)."""

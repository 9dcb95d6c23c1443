"""One party's verified view of a board, which trusts the node for nothing but delivery."""

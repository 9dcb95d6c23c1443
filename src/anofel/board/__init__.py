"""The bulletin board: a deterministic state machine over postings (paper §4.1, ``docs/board.md``).

Read in this order: ``rule`` (what a rule is), ``state`` (what the board knows), ``seat`` (one task in its
iteration), ``rules`` (one module for each group of postings), ``block_end`` (what happens at the end of a
block), ``verification`` with ``committee_keys`` and ``openings`` (the heavy checks), ``chain`` (blocks),
``interface`` (a board as its parties see it). Nothing here touches a disk or a network.
"""

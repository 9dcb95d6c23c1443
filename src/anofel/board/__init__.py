"""The bulletin board: a deterministic state machine over postings (paper §4.1, DESIGN D-01 to D-18).

Read in this order: ``rule`` (what a rule is), ``state`` (what the board knows), ``rules`` (one
module for each group of postings), ``clock`` (what happens at the end of a block), ``verification``
(the heavy checks), ``chain`` (blocks). Nodes, light clients and audits all use ``chain``.
"""

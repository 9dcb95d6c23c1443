"""Parties of a deployment: each has one directory, talks to the board alone, and may be killed at any point.

A role looks at the verified state of the board and does the next thing that is due. The steps are
those of ``phase1_setup``, ``phase2_training`` and ``phase3_access``; nothing of them is repeated here.
"""

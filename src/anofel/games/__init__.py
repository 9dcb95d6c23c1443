"""Anonymity and dataset privacy as experiments: the paper's oracle and games, played against this program.

``oracle`` is O_PAFL over the real steps, the real client role, a board and committees in this process.
``rules`` has the two games with their winning conditions, ``adversaries`` who plays them, ``put_back`` what
is put back so that an adversary shows what it can see. ``docs/games.md`` has the results.
"""

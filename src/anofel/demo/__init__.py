"""The whole system on one machine, every role its own process over HTTP (``anofel demo``).

This package only starts, watches and stops: the roles are the programs of ``anofel.cli``, each with a
directory, keys and a log of its own. What a cheater does is in ``misbehave``.
"""

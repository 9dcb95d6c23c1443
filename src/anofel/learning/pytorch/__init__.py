"""Training with PyTorch, the extra ``anofel[torch]``: the paper's networks, and any module of your own.

Nothing else in the package imports PyTorch; a base installation works without this package.
"""

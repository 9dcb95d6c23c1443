"""The ``lattice`` scheme: ring-LWE masks whose secrets are encrypted to the committee."""

"""Serving HTTP to strangers: the address, TLS, and the rules for connections (``connections``)."""

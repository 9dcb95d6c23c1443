"""Identities of role-holders: X.509 certificates with one purpose each, and an authority for tests."""

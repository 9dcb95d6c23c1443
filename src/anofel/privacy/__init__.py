"""Differential privacy that holds: integer noise, stated units and relations, and a ledger.

Start with :class:`anofel.privacy.plan.Plan` (what a task does to a client) and
:class:`anofel.privacy.ledger.Ledger` (what a client has already given away).
"""

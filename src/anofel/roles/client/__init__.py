"""A client: certified data, one turn in each iteration, the ledger of what it gave away."""

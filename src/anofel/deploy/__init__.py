"""A deployment from one file of parties: a directory for each machine, with all it needs and no secret."""

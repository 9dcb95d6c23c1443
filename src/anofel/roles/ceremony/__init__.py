"""A place where contributors to a ceremony meet, and how one visits it (``docs/ceremony.md``)."""

"""Keys that several people make together (``docs/ceremony.md``; formulas in ``docs/ceremony-format.md``)."""

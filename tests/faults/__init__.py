"""The fuzz and fault campaign: ``make test-faults``. Its short forms are in the default suite."""

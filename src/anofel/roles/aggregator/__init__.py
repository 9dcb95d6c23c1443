"""A member of a committee: makes keys with the others, adds, counts, opens sums."""

"""Models as integers: the canonical file, the rules that make the next one, other formats; no trainers."""

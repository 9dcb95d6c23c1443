"""The adversaries that ship; ``catalogue`` finds them by name."""

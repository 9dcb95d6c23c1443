"""Flower apps as trainers: unmodified, in their own environment (``docs/coming-from-flower.md``)."""

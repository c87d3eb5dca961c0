"""Models: one protocol, and what speaks it."""

"""State machines: one engine and the tables declared on it."""

"""Widgets that show runs live, each with a static HTML fallback."""

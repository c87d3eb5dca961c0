"""Runs case files against the public API and counts what holds."""

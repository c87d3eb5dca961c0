"""Traces: written, read, checked, and shown as runs."""

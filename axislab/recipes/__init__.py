"""Recipes that ship."""

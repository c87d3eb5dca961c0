"""Dialogs: sessions over many turns, whose steps are executed by runs."""

"""The conversation runtime: what a reply leads to, decided purely."""

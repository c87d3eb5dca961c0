"""Everything a researcher counts, as pandas frames."""

"""Pictures of runs, drawn with matplotlib."""

"""Studies: arms on the same tasks, seeds and repeats, kept so that nothing is run twice."""

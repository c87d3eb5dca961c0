"""axislab: a Jupyter-first research toolkit for LLM agents."""

"""Tools an agent may call: their definition, the checks before a call, and the offline ones."""

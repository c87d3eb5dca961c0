"""The loop that drives a conversation with a model and its tools."""

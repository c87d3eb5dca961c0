"""Final answers: how they are found, judged and, failing that, summarised."""

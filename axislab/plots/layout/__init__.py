"""Where the boxes and lines of a graph go; no drawing."""

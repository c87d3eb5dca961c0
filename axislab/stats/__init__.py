"""Statistics of comparisons: arrays and frames in, frozen results out."""

"""Records of runs as they happened, and their check against the mathematics."""

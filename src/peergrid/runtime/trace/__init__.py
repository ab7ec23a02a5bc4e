"""Records of runs, and a checker of them that is independent of the static proof."""

"""Model files in; results, snapshots and pictures out."""

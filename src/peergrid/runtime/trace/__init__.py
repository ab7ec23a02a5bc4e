"""What really happened in a run: how an executor notes it, and the check of such a record against the mathematics."""

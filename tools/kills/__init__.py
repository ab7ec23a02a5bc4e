"""Runs that are ended at random moments, and go on with other devices until they are complete."""

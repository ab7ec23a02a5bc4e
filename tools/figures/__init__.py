"""The figures of the README, each section made of the recorded results."""

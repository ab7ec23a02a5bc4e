"""The figures of documents, each section made of the recorded results."""

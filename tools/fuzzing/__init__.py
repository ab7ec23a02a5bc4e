"""Files and command lines that nobody meant: every reader answers with a result or with one sentence."""

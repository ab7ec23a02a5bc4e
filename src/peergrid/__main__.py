"""`peergrid` and `python -m peergrid`."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # the exit code of a shell for SIGINT


def main() -> None:
    """Run the command line; Ctrl-C while it is being loaded ends it silently."""
    try:
        from peergrid.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    command_line()


if __name__ == "__main__":
    main()

"""`peergrid` and `python -m peergrid`."""

from __future__ import annotations

import sys

BAD_USAGE = 2
INTERRUPTED = 130  # the exit code of a shell for SIGINT


def main() -> None:
    """Run the command line; Ctrl-C while it is being loaded ends it silently, an absent library with one sentence."""
    try:
        from peergrid.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ModuleNotFoundError as error:
        if (error.name or "peergrid").partition(".")[0] == "peergrid":
            raise
        print(
            f"The command line needs the library {error.name}, which is not installed; install peergrid with all that "
            "it requires, without '--no-deps'.",
            file=sys.stderr,
        )
        sys.exit(BAD_USAGE)


if __name__ == "__main__":
    main()

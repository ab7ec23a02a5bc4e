"""Ctrl-C while the command line is being loaded, and libraries that are absent."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            raise {error}

sys.meta_path.insert(0, Interrupted())
from peergrid.__main__ import main
main()
"""


def test_it_ends_without_a_traceback() -> None:
    assert ended("peergrid.cli", "KeyboardInterrupt") == (130, "", "")


@pytest.mark.parametrize("library", ["typer", "h5py"])
def test_a_library_that_is_absent_is_one_sentence(library: str) -> None:
    """Of the first to be loaded and of one that a command asks for later."""
    code, out, said = ended(library, f"ModuleNotFoundError('absent', name='{library}')", "run", __file__)
    assert (code, out) == (2, "")
    assert said.startswith(f"The command line needs the library {library}, which is not installed; ")
    assert said.count("\n") == 1


def ended(module: str, error: str, *words: str) -> tuple[int, str, str]:
    """Exit code and both outputs of the command line where the import of a module raises an error."""
    program = PROGRAM.format(module=module, error=error)
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr

"""`python -m peergrid`."""

from peergrid.cli import main

main()

"""Sparse matrices times vectors over devices: rows are split, and of the vector each device gets what its rows read.

To be read in this order: `matrix` (compressed rows, from files and SciPy), `problem` (reads and writes of a product,
for schedules), `compiled` (the product on processors), `products` (a run, and the power iteration).
"""

from peergrid.sparse.matrix import CsrMatrix, read_matrix
from peergrid.sparse.products import Products, power_iteration

__all__ = ["CsrMatrix", "Products", "power_iteration", "read_matrix"]

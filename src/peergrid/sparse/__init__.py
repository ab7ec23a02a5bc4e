"""Products of sparse matrices with vectors over devices: rows are split, and each device gets the part of the vector
that its rows read.

Read in this order: `matrix` (compressed rows, from files and SciPy), `sliced` (the same in slices), `problem` (reads
and writes of a product, for schedules), `compiled` (the product on processors), `gpus` (on GPUs, by `products.cu`),
`products` (a run, and the power iteration), `address_range` and `one_range` (a run with the vector in one range
of addresses over GPUs).
"""

from peergrid.sparse.matrix import CsrMatrix, read_matrix
from peergrid.sparse.one_range import RangeProducts
from peergrid.sparse.products import Products, power_iteration
from peergrid.sparse.sliced import SlicedMatrix

__all__ = ["CsrMatrix", "Products", "RangeProducts", "SlicedMatrix", "power_iteration", "read_matrix"]

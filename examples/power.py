"""The stiffest vibration of a chain of springs: the largest eigenvalue of a sparse matrix."""

import numpy as np
from scipy.sparse import diags_array

from peergrid.sparse import CsrMatrix, power_iteration

n = 40
matrix = CsrMatrix.of(diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
found = power_iteration(matrix, devices="cpu", tolerance=1e-3)
exact = 4 * np.sin(np.pi * n / (2 * (n + 1))) ** 2
print(f"largest eigenvalue {found.value:.5f}, exactly {exact:.5f}, after {found.products} products")

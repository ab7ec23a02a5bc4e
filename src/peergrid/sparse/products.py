"""Repeated products of a matrix with a vector, and the power iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peergrid.arguments import check_kind
from peergrid.errors import Unstable
from peergrid.runtime.devices import Devices
from peergrid.runtime.own_kernel import IN_STREAMS, OwnKernelRun, OwnKernels, Place, place_of
from peergrid.runtime.ranks.ranks import Communicator
from peergrid.schedule import Options
from peergrid.sparse.compiled import ProductKernel
from peergrid.sparse.gpus import GpuProduct
from peergrid.sparse.matrix import CsrMatrix, Numbers
from peergrid.sparse.problem import FIELD, as_vector, check_matrix, products, split
from peergrid.sparse.sliced import SlicedMatrix


class Products(OwnKernelRun):
    """A vector that is multiplied with a matrix repeatedly: x, A x, A A x, …

    Args:
        matrix: a square matrix, in compressed rows or in slices; rows are added up in the same order.
        vector: the first x, one number for each row.
        devices: such as `cpu:4`, `cuda` or `cuda:0,1`.
        options: as in `Simulation`; they change no bits.
        comm: processes that make the same calls with devices of their own.

    Raises UsageError for arguments that are not valid.
    """

    def __init__(
        self,
        matrix: CsrMatrix | SlicedMatrix,
        vector: Numbers,
        devices: str | Devices | Place = "cpu",
        options: Options = IN_STREAMS,
        comm: Communicator | None = None,
    ) -> None:
        self._matrix = matrix
        place, problem = place_of(devices, comm, options), products(matrix, as_vector(matrix, vector))
        partition = split(problem, matrix, place.devices.count)
        kernels = OwnKernels(ProductKernel(matrix), GpuProduct(matrix, problem))
        super().__init__(problem, kernels, partition, options, place)
        self.set(vector)

    def set(self, vector: Numbers) -> None:
        """Continue from another vector."""
        self.load(FIELD, as_vector(self._matrix, vector), self.step % 2)

    def vector(self) -> Numbers:
        """The vector now."""
        return self.gather(FIELD, self.step % 2)


@dataclass(frozen=True)
class Eigenpair:
    """The eigenvalue of largest magnitude and its vector, of length 1; residual: the length of A x - value x."""

    value: float
    vector: Numbers
    residual: float
    products: int


def power_iteration(
    matrix: CsrMatrix | SlicedMatrix,
    devices: str | Devices | Place = "cpu",
    tolerance: float = 1e-8,
    most: int = 10_000,
    comm: Communicator | None = None,
) -> Eigenpair:
    """The eigenvalue of largest magnitude, by power iteration (R. von Mises and H. Pollaczek-Geiringer, 1929).

    It ends where the residual is below `tolerance` times the value, or after `most` products. The same bits on any
    devices. Raises Unstable if the vector vanishes or is not finite.
    """
    check_matrix(matrix)
    check_kind("tolerance", tolerance, (int, float, np.number), "a number")
    check_kind("most", most, (int, np.integer), "a whole number")
    vector = np.ones(matrix.rows, matrix.values.dtype)
    vector /= np.linalg.norm(vector)
    with Products(matrix, vector, devices, comm=comm) as run:
        while True:
            run.advance(1)
            product = run.vector()
            value, length = float(vector @ product), float(np.linalg.norm(product))
            if not 0 < length < np.inf:
                raise Unstable(f"A vector with a length is expected after {run.step} products, got length {length}.")
            residual = float(np.linalg.norm(product - value * vector))
            if residual <= tolerance * abs(value) or run.step >= most:
                return Eigenpair(value, vector, residual, run.step)
            vector = product / product.dtype.type(length)
            run.set(vector)

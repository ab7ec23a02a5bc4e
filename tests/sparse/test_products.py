"""Sparse products: SciPy's results, the same bits on any devices, halos no larger than the matrix asks for."""

from __future__ import annotations

import gzip
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from peergrid.errors import Unstable, UsageError
from peergrid.schedule import Options
from peergrid.schedule.strategies import STRATEGIES
from peergrid.schedule.verify import program, prove
from peergrid.sparse import CsrMatrix, Products, SlicedMatrix, power_iteration, read_matrix
from peergrid.sparse.sliced import NONE

RANDOM = np.random.default_rng(4)


def banded(n: int, dtype: str = "float64") -> Any:
    """Nonzeros up to 2 left and 5 right of the diagonal, rows of many lengths, some empty."""
    rows, columns = np.nonzero(RANDOM.random((n, n)) < 0.4)
    near = (columns - rows >= -2) & (columns - rows <= 5) & (rows % 7 != 3)
    values = RANDOM.standard_normal(near.sum()) / 4
    return sparse.coo_array((values, (rows[near], columns[near])), shape=(n, n)).astype(dtype)


def anywhere(n: int) -> Any:
    return sparse.random_array((n, n), density=0.08, rng=RANDOM)


MATRICES = {"banded": banded(90), "float32": banded(80, "float32"), "anywhere": anywhere(60), "one": np.ones((1, 1))}


@pytest.mark.parametrize("name", MATRICES)
def test_products_are_those_of_scipy(name: str) -> None:
    matrix = CsrMatrix.of(MATRICES[name])
    vector = RANDOM.standard_normal(matrix.rows).astype(matrix.values.dtype)
    with Products(matrix, vector, "cpu:1") as run:
        run.advance(3)
        found = run.vector()
    wanted = vector
    for _ in range(3):
        wanted = sparse.csr_array(MATRICES[name]) @ wanted
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if name == "float32" else 1e-12, atol=1e-6)
    assert found.dtype == matrix.values.dtype


@pytest.mark.parametrize(("name", "strategy"), [*product(("banded",), STRATEGIES), ("anywhere", "async")])
def test_the_bits_do_not_depend_on_the_devices(name: str, strategy: str) -> None:
    matrix = CsrMatrix.of(MATRICES[name])
    vector, seen = RANDOM.standard_normal(matrix.rows), set()
    for devices in ("cpu:1", "cpu:2", "cpu:5"):
        with Products(matrix, vector, devices, Options(strategy)) as run:  # type: ignore[arg-type]
            run.advance(5)
            seen.add(run.vector().tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize("name", MATRICES)
def test_slices_have_the_bits_of_rows(name: str) -> None:
    rows = CsrMatrix.of(MATRICES[name])
    slices, vector, seen = SlicedMatrix.of(rows), RANDOM.standard_normal(rows.rows), set()
    assert (slices.rows, slices.nonzeros, slices.reach) == (rows.rows, rows.nonzeros, rows.reach)
    for matrix, devices in ((rows, "cpu:1"), (slices, "cpu:1"), (slices, f"cpu:{min(3, rows.rows)}")):
        with Products(matrix, vector, devices) as run:
            run.advance(3)
            seen.add(run.vector().tobytes())
    assert len(seen) == 1


def test_what_fills_slices_up_reads_nothing() -> None:
    """Infinity times nothing would be no number."""
    matrix = SlicedMatrix.of(CsrMatrix.of(np.array([[0.0, 1.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])))
    assert list(matrix.starts) == [0, 64]
    assert np.count_nonzero(matrix.columns != NONE) == matrix.nonzeros == 3
    with Products(matrix, np.array([np.inf, 1.0, 10.0]), "cpu:1") as run:
        run.advance(1)
        assert list(run.vector()) == [21.0, 3.0, 0.0]


def test_halos_are_what_rows_read_and_the_schedule_is_proved() -> None:
    matrix = CsrMatrix.of(MATRICES["banded"])
    assert matrix.reach == (2, 5)
    with Products(matrix, np.ones(matrix.rows), "cpu:3") as run:
        plan, schedule = run.layout, run.schedule(2)
    own, known = plan.partition.owned(1), plan.local(1, "vector")
    assert (own.lo[0] - known.lo[0], known.hi[0] - own.hi[0]) == (5, 5)
    assert prove(plan, program(plan, schedule)).holds
    rows = np.diff(matrix.starts)
    parts = [rows[plan.partition.owned(d).lo[0] : plan.partition.owned(d).hi[0]].sum() + 30 for d in range(3)]
    assert max(parts) < 1.3 * min(parts)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
def test_the_power_iteration_finds_the_largest_eigenvalue(devices: str) -> None:
    dense = np.diag(np.arange(1.0, 41.0)) + 0.01
    found = power_iteration(CsrMatrix.of(dense), devices, tolerance=1e-7)
    assert found.value == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=1e-10)
    assert found.residual <= 1e-7 * found.value
    assert np.linalg.norm(found.vector) == pytest.approx(1)


def test_a_vector_that_vanishes_is_said_so() -> None:
    with pytest.raises(Unstable, match="A vector with a length is expected after 1 products, got length 0"):
        power_iteration(CsrMatrix.of(sparse.csr_array((5, 5))), "cpu:1")


def test_matrix_market_files_are_read(tmp_path: Path) -> None:
    plain, packed = tmp_path / "m.mtx", tmp_path / "m.mtx.gz"
    mmwrite(plain, MATRICES["banded"])
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    wanted = CsrMatrix.of(MATRICES["banded"])
    for found in map(read_matrix, (plain, packed)):
        assert np.array_equal(found.starts, wanted.starts)
        assert np.array_equal(found.columns, wanted.columns)
        np.testing.assert_allclose(found.values, wanted.values, rtol=1e-14)


def one_bad(tmp_path: Path) -> None:
    (tmp_path / "bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n5 1 1.0\n")
    read_matrix(tmp_path / "bad.mtx")


ARRAY = np.array
WRONG = [
    (lambda at: read_matrix(at / "none.mtx"), "should be a Matrix Market file, but it cannot be read"),
    (one_bad, "should be a Matrix Market file, but it cannot be read"),
    (lambda at: CsrMatrix.of(np.ones((2, 3))), r"A square matrix is expected, got one of shape \(2, 3\)"),
    (lambda at: CsrMatrix.of(np.ones((2, 2)) * 1j), "A matrix of real numbers is expected, got complex128"),
    (lambda at: CsrMatrix(ARRAY([0, 1]), ARRAY([3]), ARRAY([1.0])), "lie from 0 to 0, got 3 to 3"),
    (lambda at: CsrMatrix(ARRAY([0, 2]), ARRAY([0]), ARRAY([1.0])), "to have 1 nonzeros together"),
    (lambda at: CsrMatrix(ARRAY([0, 2, 1]), ARRAY([0]), ARRAY([1.0])), "are expected to rise"),
    (lambda at: CsrMatrix(ARRAY([0, 1]), ARRAY([0]), ARRAY([1])), "or float64 is expected, got 1 rows of int64"),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(4)), r"A vector of 3 numbers is expected"),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(3)).set(np.ones(2)), r"3 numbers is expected, .* got \(2,\)"),
    (lambda at: CsrMatrix.of(None), "A square matrix of SciPy or NumPy is expected, got None"),
    (lambda at: SlicedMatrix.of(np.eye(3)), "'matrix' takes a CsrMatrix, which CsrMatrix.of makes, got "),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(3) * 1j), "A vector of real numbers is expected, got "),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(3), options="x"), "'options' takes peergrid.Options, such"),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(3)).advance(-1), "zero or more whole steps, got -1"),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(3)).advance(1.5), "zero or more whole steps, got 1.5"),
    (lambda at: Products(CsrMatrix.of(np.eye(3)), np.ones(3), "cpu:9"), "use fewer devices or a larger grid"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[sentence[:30] for _, sentence in WRONG])
def test_what_cannot_mean_anything(call: Any, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        call(tmp_path)

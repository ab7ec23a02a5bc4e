"""A sample of what tools/fuzz does: every reader answers mutated files with a result or with one sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from fuzzing import seeds
from fuzzing.drive import attempt, companions, limited
from fuzzing.targets import TARGETS, Target, take_velocity

from peergrid.errors import PeergridError, UsageError

USUAL = 60
FILES = {"gprmax": 200, "profile": 8, "run": 4, "run fdtd3d": 1, "run seismic": 2, "command line": 8}
"""How many files each reader is given, where it is not the usual number."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_result_or_one_sentence(target: Target) -> None:
    found = [
        finding for seed in range(10**6, 10**6 + FILES.get(target.name, USUAL)) if (finding := attempt(target, seed))
    ]
    assert not found, found[0].told


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_it_begins_with_is_read(target: Target, tmp_path: Path) -> None:
    """Of files that are run, every fifth."""
    for contents in target.seeds()[:: 5 if target.name.startswith("run ") else 1]:
        companions(tmp_path)
        (tmp_path / target.file).write_bytes(contents)
        target.take(tmp_path / target.file)


def test_an_array_of_a_parameter_is_looked_at_before_it_is_read(tmp_path: Path) -> None:
    """A header of 64 TB, a broken one, a chunk of no cells: one sentence each."""
    huge = seeds.npy(np.zeros(2, np.float32)).replace(b"(2,)", b"(2000000000000,)")
    broken = seeds.npy(np.zeros(2, np.float32)).replace(b"'descr'", b"'")
    zarr = json.loads(seeds.velocity_zarr()[0])
    zarr["chunk_grid"]["configuration"]["chunk_shape"] = [0, 10]
    chunkless = json.dumps(zarr).encode()
    for name, contents in (("velocity.npy", huge), ("velocity.npy", broken), ("zarr.json", chunkless)):
        companions(tmp_path)
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(UsageError, match=r"^medium\.velocity is expected"):
            take_velocity(tmp_path / name)


def test_values_of_a_parameter_lie_in_its_own_file(tmp_path: Path) -> None:
    companions(tmp_path)
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["v"] = seeds.velocities(seeds.CUBE)
    with h5py.File(tmp_path / "cube.h5", "w") as file:
        file["model/v"] = h5py.ExternalLink("other.h5", "v")
    with pytest.raises(UsageError, match="its values lie in another file"):
        take_velocity(tmp_path / "cube.h5")


def test_what_peergrid_reads_again_has_checksums(tmp_path: Path) -> None:
    """No byte of a kept trace or of a checkpoint can be another without its being told, and none makes HDF5 hang."""
    for target, made in (("trace", seeds.kept_traces), ("checkpoint", seeds.checkpoints)):
        contents, take = made()[0], next(one.take for one in TARGETS if one.name == target)
        for place in range(0, len(contents), 7):
            path = tmp_path / "trace-000000.h5"
            path.write_bytes(contents[:place] + bytes([contents[place] ^ 0xFF]) + contents[place + 1 :])
            with limited(5), suppress(PeergridError):
                take(path)


def fails(_: Path) -> None:
    raise OverflowError("planted")


def is_refused_in_two_lines(_: Path) -> None:
    raise UsageError("one\ntwo")


def is_refused_with_escapes(_: Path) -> None:
    raise UsageError("\x1b[31m")


@pytest.mark.parametrize("take", [fails, is_refused_in_two_lines, is_refused_with_escapes])
def test_what_is_to_be_found_is_found(take) -> None:  # type: ignore[no-untyped-def]
    assert attempt(replace(TARGETS[0], take=take), 1) is not None

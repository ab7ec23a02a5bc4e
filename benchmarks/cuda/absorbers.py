"""Ways to make the absorbers of 3D radar on one GPU: rates, or digests after a few steps, of each.

    python benchmarks/cuda/absorbers.py [--size 512] [--only WAY,...] [--digests] [--out absorbers.json]

`now`: as runs make them, the layers of each axis in stages of their own, by kernels of one step. `z`: those across rows
in one stage with the usual updates, which the kernel that streams then makes itself. `yz`: those of two axes so, with a
box for each edge. `z:176x12`: in a tile of so many columns and rows. `now/6`: kernels of one step with room for so many
blocks on a multiprocessor. Ways replace the choice of kernels in this process.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from radar3d import domain  # noqa: E402
from record import about  # noqa: E402

import peergrid  # noqa: E402
from peergrid import Options, Problem  # noqa: E402
from peergrid.bench.measure import Case, copy_bandwidth, measure  # noqa: E402
from peergrid.bench.problems import noisy  # noqa: E402
from peergrid.codegen.cuda.gpu_model import H200, GpuModel  # noqa: E402
from peergrid.codegen.cuda.onestep import rows3d  # noqa: E402
from peergrid.codegen.cuda.onestep.body import Body  # noqa: E402
from peergrid.codegen.cuda.onestep.groups import Group, groups  # noqa: E402
from peergrid.codegen.cuda.onestep.kernels import arguments_of  # noqa: E402
from peergrid.codegen.cuda.onestep.regions import regions  # noqa: E402
from peergrid.codegen.cuda.stream3d.choose import one_pass  # noqa: E402
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel, in_one  # noqa: E402
from peergrid.codegen.cuda.stream3d.rings import part  # noqa: E402
from peergrid.grid import Box  # noqa: E402
from peergrid.models.fdtd3d import build  # noqa: E402
from peergrid.runtime.cuda.lowering import kernels  # noqa: E402
from peergrid.runtime.devices import parse_devices  # noqa: E402
from peergrid.stencil.problem import Assignment, Stage, Update  # noqa: E402
from peergrid.trials import trial  # noqa: E402

WAYS = "now,z:176x12,z,now/6,now/8,z:176x12/6,yz:176x12"
FORM = re.compile(r"(?P<axes>now|[xyz]{1,2})(?::(?P<columns>\d+)x(?P<rows>\d+))?(?:/(?P<blocks>\d+))?")
POINT = 8  # cells of a source at most


@dataclass(frozen=True)
class Way:
    """axes: those whose layers are in the stage of the usual updates; columns, rows: of a tile, 0 for the usual ones;
    blocks: of kernels of one step, on a multiprocessor.
    """

    axes: frozenset[int]
    columns: int
    rows: int
    blocks: int

    @classmethod
    def of(cls, text: str) -> Way:
        found = FORM.fullmatch(text)
        if found is None:
            raise SystemExit(f"A way is such as now, z:176x12 or now/6, got '{text}'.")
        axes = frozenset("xyz".index(letter) for letter in found["axes"] if letter in "xyz")
        return cls(axes, int(found["columns"] or 0), int(found["rows"] or 0), int(found["blocks"] or 4))

    def kernel(self, problem: Problem, gpu: GpuModel) -> StreamKernel | None:
        """The kernel of one step that streams."""
        found = one_pass(together(problem, self.axes) if self.axes else problem, gpu)
        if found is None or not self.columns:
            return found
        beside = found.shapes[0].columns % 8  # columns that a tile loses
        return in_one(found.problem, 1, replace(found.shapes[0], columns=self.columns + beside, rows=self.rows))

    def chosen(self) -> None:
        """From now on runs of this process go this way."""
        known: dict[int, tuple[Problem, StreamKernel | None]] = {}

        def choose(problem: Problem, gpu: GpuModel = H200) -> StreamKernel | None:
            if id(problem) not in known:
                known[id(problem)] = problem, self.kernel(problem, gpu)
            return known[id(problem)][1]

        kernels.one_pass = trial.one_pass = choose  # type: ignore[attr-defined]
        rows3d.KERNEL = re.sub(r"\{threads\}, \d+\)", f"{{threads}}, {self.blocks})", rows3d.KERNEL)


def together(problem: Problem, axes: frozenset[int]) -> Problem:
    """The problem with the layers across some axes in the stage of the usual updates, on the cells within other layers:
    only kernels that leave those to others may make it.
    """
    stages = (stage for group in groups(problem) for stage in _stages(problem, group, axes))
    return _with(problem, tuple(stages))


def _stages(problem: Problem, group: Group, axes: frozenset[int]) -> Iterator[Stage]:
    """The stages of a group: one of what is put together, then those of the rest."""
    usual = max((update.box for s in group.stages for update in problem.stages[s].updates), key=lambda box: box.size)
    inner, rest = list[Stage](), list[Stage]()
    for number in group.stages:
        updates = problem.stages[number].updates
        kept = tuple(update for update in updates if _spans(update.box, usual, axes))
        others = tuple(update for update in updates if update not in kept)
        inner += [Stage(tuple(replace(one, box=_cut(one.box, usual, axes)) for one in kept))] if kept else []
        rest += [Stage(others)] if others else []
    yield _composed(_with(problem, tuple(inner)))
    yield from rest


def _spans(box: Box, usual: Box, axes: frozenset[int]) -> bool:
    return box.size > POINT and all(2 * box.shape[axis] > usual.shape[axis] for axis in range(3) if axis not in axes)


def _cut(box: Box, usual: Box, axes: frozenset[int]) -> Box:
    for axis in {0, 1, 2} - axes:
        box = box.with_axis(axis, max(box.lo[axis], usual.lo[axis]), min(box.hi[axis], usual.hi[axis]))
    return box


def _composed(problem: Problem) -> Stage:
    """What the stages of a step, one group, do to each region, as one stage."""
    (group,) = groups(problem)
    found = list[Update]()
    for region in regions(problem, 0, group, problem.grid.box, carries=False):
        members, values = region.variant.members, Body(arguments_of(problem), region.variant).values
        if not members:
            continue
        made = dict(zip((member.of(problem).target for member in members), values, strict=True))
        parts = [problem.stages[member.stage].updates[member.update] for member in members]
        fields = {field.name: field for update in parts for field in update.fields}
        params = dict(param for update in parts for param in update.params)
        assignments = tuple(Assignment(target, value) for target, value in made.items())
        name, given = parts[-1].name, tuple(fields.values())
        found.append(Update(name, region.box, assignments, given, (), tuple(params.items())))
    return Stage(tuple(found))


def _with(problem: Problem, stages: tuple[Stage, ...]) -> Problem:
    whole = part(problem, tuple(range(len(problem.stages))))
    return replace(whole, stages=stages, receivers=problem.receivers, reductions=problem.reductions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--only", default=WAYS)
    parser.add_argument("--digests", action="store_true", help="of three steps, in place of rates")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    devices = parse_devices("cuda:0")
    bandwidth, made = copy_bandwidth(devices), noisy(build(domain(given.size, "layers")).problem)
    circumstances = about(("peergrid", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"))
    found: dict[str, Any] = {"about": circumstances, "copy_bytes_per_s": bandwidth}
    for text in given.only.split(","):
        Way.of(text).chosen()
        problem = replace(made)  # without the kernels of the last way
        if given.digests:
            found[text] = peergrid.run(problem, steps=3, devices=devices, options=Options("overlap", depth=1)).sha256
        else:
            case = Case(text, lambda one=problem: one, 1, "overlap", 1, 50, text)  # type: ignore[misc]
            (row,) = measure([case], devices, bandwidth)
            numbers = {"gcells_per_s": row.gcells_per_s, "of_one_pass": row.of_copy, "spread": row.spread}
            found[text] = {**numbers, "samples": row.samples}
        print(text, json.dumps(found[text]), flush=True)
        if given.out:
            given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

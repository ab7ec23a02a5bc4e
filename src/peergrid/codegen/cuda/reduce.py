"""The kernel of a reduction: constants and the expression, which Python writes, around `skeletons/reduce.cuh`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.common.arguments import Arguments, prelude
from peergrid.codegen.cuda.common.expressions import Result, cell_text
from peergrid.codegen.cuda.common.names import flag, flags, identifiers, listed
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.onestep.kernels import arguments_of
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.skeletons.layouts import layout_of
from peergrid.codegen.reductions import GROUP, LEAF
from peergrid.stencil import Problem, Reduction
from peergrid.stencil.expr import Read
from peergrid.stencil.remember import remembered

ENTRY = "reduce_cells"
THREADS, SHARED_BYTES = 256, GROUP * 8
KINDS = {"sum": "SUM", "mean": "SUM", "l2": "SQUARES", "max": "LARGEST", "min": "SMALLEST"}
FOUR = 4  # neighbouring cells of a lane
IN_FLIGHT = 4  # accesses of a lane that are under way together: 128 KiB on a multiprocessor full of threads

REDUCED = layout_of("reduce.cuh", "Reduced")

CELL = """\
// {name}: {kind} of {reads}
struct Cell {{
  static constexpr int AXES = {axes}, READS = {count}, KIND = ::{code}, UNROLL = {unroll};
  static constexpr int COLUMNS = {columns}, LINES = {lines}, LEAVES = {leaves};  // of the grid: a row's cells and so on
  static constexpr int FROM = {first}, TO = {last};                      // the columns that count
  static constexpr int LEFT = {left}, RIGHT = {right};                            // how far it reads along a row
  static constexpr bool REFLECTS = {reflects};

  static __device__ constexpr int dx(int n) {{ constexpr int of[] = {{{dx}}}; return of[n]; }}
  static __device__ constexpr bool varies(int n) {{ constexpr bool of[] = {{{varies}}}; return of[n]; }}
  static __device__ constexpr bool wide(int n) {{ constexpr bool of[] = {{{wide}}}; return of[n]; }}

  static __device__ __forceinline__ void rows(const Arguments& a, int i, int j, const R* (&rows)[READS]) {{
{rows}
  }}
  static __device__ __forceinline__ R value(const Arguments& a, const R (&read)[READS]) {{
{names}
{declared}    return {value};
  }}
}};

extern "C" __global__ void __launch_bounds__({threads}) {entry}(const __grid_constant__ Arguments a,
                                                       const __grid_constant__ Reduced r) {{
  extern __shared__ __align__(128) unsigned char shared[];
  reduce<Cell>(a, r, reinterpret_cast<double*>(shared));
}}
"""


@remembered()
def reduce_program(problem: Problem, name: str) -> Program:
    """The kernel of a reduction. A launch has a thread block for each group."""
    one = next(one for one in problem.reductions if one.name == name)
    return Program(_Text(problem, one).source, ENTRY, THREADS, SHARED_BYTES)


@dataclass(frozen=True)
class _Text:
    """The text of one reduction of a problem."""

    problem: Problem
    reduction: Reduction

    @property
    def source(self) -> str:
        return "\n".join((prelude(self._arguments, "one_step.cuh"), include("reduce.cuh"), self._cell))

    @cached_property
    def _arguments(self) -> Arguments:
        return arguments_of(self.problem)

    @cached_property
    def _reads(self) -> tuple[Read, ...]:
        return tuple(sorted(self.reduction.reads, key=lambda read: (read.field, read.offset)))

    @cached_property
    def _names(self) -> dict[Read, str]:
        """The name of each read in the text, as the user wrote it: `u_at_0_m1` is u[0, -1]."""
        texts = {
            read: f"{read.field}_at_{'_'.join(f'm{-o}' if o < 0 else str(o) for o in read.offset)}"
            for read in self._reads
        }
        found = identifiers(texts.values())
        return {read: found[text] for read, text in texts.items()}

    @property
    def _value(self) -> Result:
        arguments, dtype = self._arguments, self.problem.grid.dtype
        given = arguments.param, arguments.now, arguments.entry
        (found,) = cell_text([self.reduction.value], self._names.__getitem__, *given, dtype)
        return found

    @property
    def _cell(self) -> str:
        grid, one, reads = self.problem.grid, self.reduction, self._reads
        names = list(self._names.values())
        varies = [grid.ndim - 1 in one.described[read.field].axes for read in reads]
        steps = [read.offset[-1] if along else 0 for read, along in zip(reads, varies, strict=True)]
        wide = [one.described[r.field].full and step % FOUR == 0 for r, step in zip(reads, steps, strict=True)]
        return CELL.format(
            name=one.name,
            kind=one.kind,
            reads=", ".join(names),
            axes=grid.ndim,
            count=len(reads),
            code=KINDS[one.kind],
            unroll=max(1, IN_FLIGHT // len(reads)),
            columns=grid.shape[-1],
            lines=grid.shape[1] if grid.ndim == 3 else 1,
            leaves=-(-grid.shape[-1] // LEAF),
            first=one.box.lo[-1],
            last=one.box.hi[-1],
            left=max(0, -min(steps)) if grid.boundary[-1] == "reflecting" else -(1 << 20),
            right=max(0, *steps) if grid.boundary[-1] == "reflecting" else -(1 << 20),
            reflects=flag(grid.boundary[-1] == "reflecting"),
            dx=listed(steps),
            varies=flags(varies),
            wide=flags(wide),
            rows="\n".join(f"    rows[{n}] = {self._row(read)};" for n, read in enumerate(reads)),
            names="\n".join(f"    const R {name} = read[{n}];" for n, name in enumerate(names)),
            declared="".join(f"    {line}\n" for line in self._value.declarations),
            value=self._value.value,
            threads=THREADS,
            entry=ENTRY,
        )

    def _row(self, read: Read) -> str:
        """The text of the row on which a read lies: a pointer to its cell of place 0."""
        name, previous = self.reduction.source(read.field)
        field, axes = f"a.fields[{self._arguments.fields.index(name)}]", self.problem.fields[name].axes
        text = f"{field}.slot[a.{'source' if previous else 'target'}]"
        ndim = self.problem.grid.ndim
        for place, axis in enumerate(axes):
            if axis < ndim - 1:
                line = self._line(axis, read.offset[axis])
                text += f" + {line}" + (f" * {field}.pitch[{place}]" if place < len(axes) - 1 else "")
        return text

    def _line(self, axis: int, offset: int) -> str:
        here = f"({'ij'[axis]} + {offset})" if offset else "ij"[axis]
        if self.problem.grid.boundary[axis] == "reflecting" and offset:
            return f"pg_mirror({here}, {self.problem.grid.shape[axis]})"
        return f"(long long){here}"


def record_doubles(problem: Problem, first: int, last: int) -> int:
    """The number of doubles in one record; first, last: the groups of which a device has a part."""
    return last - first + 2 * GROUP + (2 * LEAF if problem.grid.ndim == 1 else 0)

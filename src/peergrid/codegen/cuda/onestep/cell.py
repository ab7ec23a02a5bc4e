"""One cell per thread: the kernel for small regions and for cells whose reads cross a reflecting edge.

All small regions of a group share one launch; each block finds its region in a table and switches to its variant.
"""

from __future__ import annotations

from collections.abc import Mapping

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import plus
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.onestep.body import Body
from peergrid.codegen.cuda.onestep.groups import Group
from peergrid.codegen.cuda.onestep.naming import Naming, coordinates
from peergrid.codegen.cuda.onestep.regions import Variant
from peergrid.stencil.expr import Read

THREADS = 256

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}) {name}(const __grid_constant__ Arguments a) {{
  int n = 0;
  while (n + 1 < a.count && a.regions[n + 1].first <= (int)blockIdx.x) ++n;
  const Region region = a.regions[n];
  long long at = (long long)((int)blockIdx.x - region.first) * blockDim.x + threadIdx.x;
{decode}
  const long long step = now(a);
  switch (region.variant) {{
{cases}
  }}
}}
"""


def function(arguments: Arguments, group: Group, variant: Variant, number: int) -> str:
    """The device function of one variant."""
    naming, body = Naming(arguments), Body(arguments, variant)

    def read(node: Read) -> str:
        at = naming.at(node.field, _found(arguments, variant, node), group.found(node.field))
        return f"__ldg({naming.field(node.field)} + {at})"

    names = coordinates(arguments.problem.grid.ndim)
    here = dict(enumerate(names))
    reads = sorted({node.field for node in body.loads()})
    lines = [f"const R* {naming.field(name)} = {naming.block(name, group.found(name))};" for name in reads]
    lines += body.statements(read, names)
    lines += [
        f"({naming.block(name, group.after[name])})[{naming.at(name, here, group.after[name])}]"
        f" = {body.result(name, read)};"
        for name in variant.stored
    ]
    signature = listed(f"int {name}" for name in names)
    more = ", const short* const places" if arguments.varying else ""
    head = f"__device__ __forceinline__ void cell_{number}(const Arguments& a, {signature}, long long step{more}) {{"
    return "\n".join([head, *(f"  {line}" for line in lines), "}"])


def _found(arguments: Arguments, variant: Variant, read: Read) -> dict[int, str]:
    """The texts of the coordinates that a read finds: beyond a reflecting edge, the mirrored ones."""
    grid, found = arguments.problem.grid, dict[int, str]()
    for axis, (name, offset) in enumerate(zip(coordinates(grid.ndim), read.offset, strict=True)):
        text, reflects = plus(name, offset), variant.mirrored and offset != 0 and grid.boundary[axis] == "reflecting"
        found[axis] = f"pg_mirror({text}, {grid.shape[axis]})" if reflects else text
    return found


def kernel(arguments: Arguments, name: str, variants: Mapping[int, Variant]) -> str:
    """The kernel that works through a table of regions."""
    names = coordinates(arguments.problem.grid.ndim)
    call = listed(("a", *names, "step"))
    cases = "\n".join(f"    case {number}: cell_{number}({call}); break;" for number in variants)
    return KERNEL.format(name=name, decode=_decode(names), cases=cases, threads=THREADS)


def _decode(names: tuple[str, ...]) -> str:
    """From a linear index to the coordinates of a cell, the last axis fastest."""
    lines = []
    for axis in reversed(range(1, len(names))):
        extent = f"(region.hi[{axis}] - region.lo[{axis}])"
        lines += [f"  const int {names[axis]} = region.lo[{axis}] + (int)(at % {extent});", f"  at /= {extent};"]
    lines += [f"  const int {names[0]} = region.lo[0] + (int)at;", f"  if ({names[0]} >= region.hi[0]) return;"]
    return "\n".join(lines)

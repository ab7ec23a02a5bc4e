"""One step in a pass over memory, for any problem.

In the order of reading: `groups`, which stages one kernel carries out; `regions`, which cells all do the same;
`body`, the arithmetic of a cell, with names from `naming`; then a kernel for each kind of region, `wide` (with
`side_by_side`, where cells read more than registers hold), `cell` and `rows3d` (with `alike`, which regions share a
function); `kernels` puts them together and lists their launches.
"""

from peergrid.codegen.cuda.onestep.kernels import OneStepKernels, OneStepLaunch

__all__ = ["OneStepKernels", "OneStepLaunch"]

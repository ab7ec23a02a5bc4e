"""The generated row functions as text, in LLVM's intermediate representation."""

from __future__ import annotations

from peergrid.codegen.cpu.lanes import VECTOR, vector_for
from peergrid.codegen.cpu.plan import code_of, stream_plan
from peergrid.codegen.cpu.rows import Entries, Later, Operand, Sample, Write
from peergrid.stencil import Problem
from peergrid.stencil.expr import Now, Param, Read

ENOUGH = 3  # steps: a first, a middle and a last one show every form of an update


def source(problem: Problem) -> str:
    """The row functions of a problem, each under the updates it serves and what its pointers mean."""
    uses: dict[str, list[str]] = {}
    for number, stage in enumerate(problem.stages):
        nodes = [node for s in range(1, ENOUGH + 1) for node in stream_plan(problem, s).nodes if node.stage == number]
        forms = {(tuple(sorted(node.in_place.items())), tuple(sorted(node.renamed))) for node in nodes}
        for in_place, renamed in sorted(forms):
            for index, update in enumerate(stage.updates):
                if renamed and not set(update.targets) - set(renamed):
                    continue
                by_planes = update.box.ndim > 2
                vector = VECTOR if by_planes else vector_for(update.box.shape, problem.itemsize)
                code = code_of(problem, number, index, in_place, frozenset(renamed), by_planes, vector=vector)
                pointers = ", ".join(f"p{i}: {_name(operand)}" for i, operand in enumerate(code.operands))
                uses.setdefault(code.text, []).append(f"; stage {number}, {update.name} on {update.box}: {pointers}")
    return "\n\n".join("\n".join((*notes, text)) for text, notes in uses.items())


def _name(operand: Operand) -> str:
    match operand:
        case Write(field):
            return f"{field}.next"
        case Read(field, offset):
            return f"{field}[{', '.join(map(str, offset))}]"
        case Later(field):
            return f"{field} later"
        case Param(key):
            return key
        case Entries(table):
            return table
        case Now(signal) | Sample(signal):
            return f"{signal}.now"

"""Row functions as LLVM's intermediate representation, in vectors of 64 bytes.

Fields, offsets, parameters, signals and tables become numbered pointers, so that updates of one form share a function:
the two ends of an absorber, every value of a parameter, every shape. Constants of the stencil and the lengths of tables
are part of the form. In 3D most functions have one pointer for each plane of a field that is read: neighbours along a
line and on the lines beside it are reached from there. Several rows (in 3D planes) are computed at once, and what more
than one of them reads is loaded once. The function walks over lines and vectors by itself; the end of a line is one
masked vector (see `loads`). Memory of planes that no plane before has read is prefetched, and values that nobody reads
soon bypass the caches (see `prefetch`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from peergrid.codegen.cpu.entries import entry_functions, looked_up
from peergrid.codegen.cpu.lanes import VECTOR, Lanes
from peergrid.codegen.cpu.loads import Load, Reach, ends, masked, reaches, whole
from peergrid.codegen.cpu.native import shifts_vectors
from peergrid.codegen.cpu.prefetch import NOTHING, Traffic, early_prefetches, prefetches
from peergrid.codegen.cpu.rows import Entries, Later, Operand, RowCode, Sample, Write, slopes
from peergrid.codegen.cpu.stores import PAST, on_lines
from peergrid.codegen.cpu.stores import masked as masked_stores
from peergrid.codegen.cpu.stores import whole as whole_stores
from peergrid.stencil import Assignment, Problem
from peergrid.stencil.expr import Binary, Const, Entry, Expr, Now, Param, Read, Unary, Where, ordered
from peergrid.stencil.pairs import FORMATS
from peergrid.stencil.program import counts

ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
BEST = {"min": "olt", "max": "ogt"}  # NaN wins, and of two equal zeros the second


@dataclass
class _Writer:
    """A row function while it is written: values are numbered, equal ones once.

    by_planes: one pointer for each plane of a field (else for each value that is read); before: code of a line, ahead
    of its vectors; code: of a vector.
    """

    problem: Problem
    in_place: Mapping[str, str]
    lanes: Lanes
    by_planes: bool
    permuting: bool = False
    ahead: int = 0
    operands: list[Operand] = field(default_factory=list)
    users: list[set[str]] = field(default_factory=list)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)
    lines: dict[tuple[int, int], str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    code: list[str | Load] = field(default_factory=list)

    def pointer(self, operand: Operand, user: str) -> int:
        """The number of an operand, which is added where it is new."""
        if operand not in self.operands:
            self.operands.append(operand)
            self.users.append(set())
        number = self.operands.index(operand)
        self.users[number].add(user)
        return number

    def value(self, expr: Expr, user: str) -> str:
        """The name of an expression's value; the code of it and of its parts is written first."""
        names: dict[Expr, str] = {}
        for part in ordered((expr,)):
            names[part] = self._new(part, user, names)
        return names[expr]

    @property
    def looks_up(self) -> bool:
        """True where entries of tables are asked for."""
        return any(isinstance(operand, Entries) for operand in self.operands)

    @property
    def vector(self) -> str:
        return self.lanes.vector

    @property
    def mask(self) -> str:
        return self.lanes.mask

    def line(self, number: int, beside: int) -> str:
        """The pointer to the line `beside` an operand's own."""
        if not beside:
            return f"%l{number}"
        key = (number, beside)
        if key not in self.lines:
            self.lines[key] = name = f"%l{number}.{len(self.lines)}"
            self.before += [
                f"{name}.by = mul i64 %s{number}, {beside}",
                f"{name} = getelementptr i8, ptr %l{number}, i64 {name}.by",
            ]
        return self.lines[key]

    def _new(self, expr: Expr, user: str, names: Mapping[Expr, str]) -> str:
        parts = [self._operand(expr, place, names) for place in range(len(expr.operands))]
        match expr:
            case Const(value):
                return f"splat ({self.lanes.number} {_bits(value, self.problem.grid.dtype)})"
            case Read() if self._varies(expr):
                return self._load(expr, user)
            case Now(signal) if along := slopes(self.problem, expr)[-1]:
                return self._gather(self.pointer(Sample(signal, self.ahead), user), along)
            case Read() | Param() | Now():
                return self._spread(expr, user)
            case Unary(op):
                return self._unary(op, parts[0])
            case Binary(op):
                return self._binary(op, parts[0], parts[1], expr.operands[0].is_condition)
            case Where():
                return self._let(f"select {self.mask} {parts[0]}, {self.vector} {parts[1]}, {self.vector} {parts[2]}")
            case Entry(table):
                return self._entry(table, parts[0], user)
        raise TypeError(f"Unknown expression {expr!r}.")

    def _operand(self, expr: Expr, place: int, names: Mapping[Expr, str]) -> str:
        """The name of an operand; a condition counts as 1 or 0 where a number is asked for."""
        name = names[expr.operands[place]]
        return self._let(f"uitofp {self.mask} {name} to {self.vector}") if counts(expr, place) else name

    def _unary(self, op: str, value: str) -> str:
        match op:
            case "neg":
                return self._let(f"fneg {self.vector} {value}")
            case "not":
                return self._let(f"xor {self.mask} {value}, splat (i1 true)")
            case "power_of_two":
                return self._power_of_two(value)
            case "exponent":
                return self._exponent(value)
        called = f"@llvm.{'fabs' if op == 'abs' else op}.{self.lanes.suffix}"
        return self._let(f"call {self.vector} {called}({self.vector} {value})")

    def _power_of_two(self, value: str) -> str:
        """2 to the nearest whole number: the sum has it in its last digits, and these become the exponent."""
        kind, words = FORMATS[self.problem.grid.dtype], self.lanes.words
        raise_by = f"splat ({self.lanes.number} {_bits(kind.to_whole + kind.largest, self.problem.grid.dtype)})"
        raised = self._let(f"fadd {self.vector} {value}, {raise_by}")
        bits = self._let(f"bitcast {self.vector} {raised} to {words}")
        moved = self._let(f"shl {words} {bits}, {self._whole(kind.fraction)}")
        return self._let(f"bitcast {words} {moved} to {self.vector}")

    def _exponent(self, value: str) -> str:
        """The exponent of normal numbers, from their bits."""
        kind, words = FORMATS[self.problem.grid.dtype], self.lanes.words
        bits = self._let(f"bitcast {self.vector} {value} to {words}")
        size = self._let(f"and {words} {bits}, {self._whole(2 ** (8 * self.problem.itemsize - 1) - 1)}")
        moved = self._let(f"lshr {words} {size}, {self._whole(kind.fraction)}")
        found = self._let(f"sub {words} {moved}, {self._whole(kind.largest)}")
        return self._let(f"sitofp {words} {found} to {self.vector}")

    def _whole(self, value: int) -> str:
        return f"splat (i{8 * self.problem.itemsize} {value})"

    def _binary(self, op: str, one: str, two: str, logical: bool) -> str:
        if op in ("and", "or"):
            return self._let(f"{op} {self.mask} {one}, {two}")
        if op in ARITHMETIC:
            return self._let(f"{ARITHMETIC[op]} {self.vector} {one}, {two}")
        if op in COMPARE:
            return self._let(f"fcmp {COMPARE[op]} {self.vector} {one}, {two}")
        better = self._let(f"fcmp {BEST[op]} {self.vector} {one}, {two}")
        no_number = self._let(f"fcmp une {self.vector} {one}, {one}")
        first = self._let(f"or {self.mask} {better}, {no_number}")
        return self._let(f"select {self.mask} {first}, {self.vector} {one}, {self.vector} {two}")

    def _load(self, read: Read, user: str) -> str:
        """A vector of values that differ along the line."""
        beside, along = read.offset[1:] if self.by_planes else (0, 0)
        if read.field in self.in_place:
            number = self.pointer(Write(self.in_place[read.field], self.ahead), user)
        elif self.by_planes:
            number = self.pointer(Read(read.field, (read.offset[0] + self.ahead, 0, 0)), user)
        else:
            number = self.pointer(self._moved(read), user)
        return self._let("load", self.line(number, beside), along)

    def _moved(self, read: Read) -> Read:
        """The read of an expression, for the row that is being written."""
        return Read(read.field, (read.offset[0] + self.ahead, *read.offset[1:]))

    def _spread(self, expr: Read | Param | Now, user: str) -> str:
        """One value for all cells of the line."""
        operand: Operand = expr
        if isinstance(expr, Read):
            operand = self._moved(expr)
        elif isinstance(expr, Now) and self.problem.signals[expr.signal].slopes:
            operand = Sample(expr.signal, self.ahead)
        number = self.pointer(operand, user)
        key = ("line", number)
        if key not in self.known:
            self.known[key] = name = f"%c{number}"
            self.before += [
                f"{name}.1 = load {self.lanes.number}, ptr %l{number}",
                f"{name}.2 = insertelement {self.vector} poison, {self.lanes.number} {name}.1, i64 0",
                f"{name} = shufflevector {self.vector} {name}.2, {self.vector} poison, "
                f"<{self.lanes.count} x i32> zeroinitializer",
            ]
        return self.known[key]

    def _gather(self, number: int, along: int) -> str:
        """A signal's samples, so many places apart from cell to cell; those of lanes beyond the line exist as well."""
        start = self._let(f"mul i64 %x, {along}")
        found = "poison"
        for lane in range(self.lanes.count):
            at = self._let(f"add i64 {start}, {lane * along * self.lanes.size}")
            place = self._let(f"getelementptr i8, ptr %l{number}, i64 {at}")
            value = self._let(f"load {self.lanes.number}, ptr {place}")
            found = self._let(f"insertelement {self.vector} {found}, {self.lanes.number} {value}, i64 {lane}")
        return found

    def _entry(self, table: str, index: str, user: str) -> str:
        """Entries of a table, at the nearest places that there are."""
        number, count = self.pointer(Entries(table), user), len(self.problem.tables[table])
        near = index
        for comparison, end in (("ogt", 0), ("olt", count - 1)):
            edge = f"splat ({self.lanes.number} {_bits(end, self.problem.grid.dtype)})"
            inside = self._let(f"fcmp {comparison} {self.vector} {near}, {edge}")
            near = self._let(f"select {self.mask} {inside}, {self.vector} {near}, {self.vector} {edge}")
        places = self._let(f"fptosi {self.vector} {near} to {self.lanes.words}")
        return looked_up(self.lanes, self._let, number, count, places, self.permuting)

    def _varies(self, read: Read) -> bool:
        """True where the values differ along a line."""
        return self.problem.grid.ndim - 1 in self.problem.fields[read.field].axes

    def _let(self, *instruction: object) -> str:
        """The name of what an instruction yields; loads stand as their pointer and the cells from it."""
        if instruction not in self.known:
            self.known[instruction] = name = f"%v{len(self.known)}"
            if instruction[0] == "load":
                _, line, along = instruction
                assert isinstance(line, str)
                assert isinstance(along, int)
                self.code.append(Load(name, line, along))
            else:
                self.code.append(f"{name} = {instruction[0]}")
        return self.known[instruction]


def vector_code(
    problem: Problem,
    assignments: Sequence[Assignment],
    in_place: Mapping[str, str],
    rows: int,
    wide: bool | None = None,
    traffic: Traffic = NOTHING,
    by_planes: bool = True,
    vector: int = VECTOR,
) -> RowCode:
    """The row function of an update's assignments on so many rows (in 3D planes) at once.

    in_place: fields whose old values lie where new values are written, each with the field that is written there;
    by_planes: in 3D, all that is read of a plane of a field is reached from one pointer, and planes are prefetched;
    vector: bytes of one, see `vector_for` (by planes, the usual ones);
    wide: an instruction shifts neighbours along a line together, or permutes them (None: as this processor does);
    traffic: early prefetches, and stores that bypass the caches.
    """
    wide = vector == VECTOR and (shifts_vectors() if wide is None else wide)
    writer = _Writer(problem, in_place, Lanes(problem.grid.dtype, vector), by_planes, wide)
    targets = [(Write(a.target, ahead), a.target) for ahead in range(rows) for a in assignments]
    stores = [writer.pointer(*target) for target in targets]
    values: list[str] = []
    for writer.ahead in range(rows):
        values += [writer.value(a.value, a.target) for a in assignments]
    shifted = reaches(writer.lanes, writer.code) if wide else {}
    early = [Later(name, planes + ahead) for name, planes in traffic.early for ahead in range(rows)]
    for later in early:
        writer.pointer(later, targets[0][1])
    fetched = _fetched(writer, rows) if by_planes else []
    past = [number for number, operand in enumerate(writer.operands) if _is_new(operand, traffic.past)]
    text = _function(writer, list(zip(stores, values, strict=True)), fetched, shifted, past)
    return RowCode(text, tuple(writer.operands), tuple(frozenset(users) for users in writer.users))


def copy_code(problem: Problem, name: str, rows: int = 1, vector: int = VECTOR) -> RowCode:
    """The row function that carries a field's old value over, on so many rows at once; vector: see `vector_for`."""
    old = Assignment(name, Read(name, (0,) * problem.grid.ndim))
    by_planes = problem.grid.ndim == 3 and vector == VECTOR
    return vector_code(problem, (old,), {}, rows, by_planes=by_planes, vector=vector)


def fill_code(problem: Problem, name: str, value: float, rows: int) -> RowCode:
    """The row function that gives a field a value, on so many planes at once."""
    return vector_code(problem, (Assignment(name, Const(value)),), {}, rows)


def _fetched(writer: _Writer, rows: int) -> list[int]:
    """The operands that lie on planes which no plane before has read: the foremost of each field."""
    planes: dict[str, list[tuple[int, int]]] = {}
    for number, operand in enumerate(writer.operands):
        if isinstance(operand, Write):
            planes.setdefault(f"new {operand.field}", []).append((operand.ahead, number))
        elif isinstance(operand, Read) and _in_planes(writer, operand):
            planes.setdefault(operand.field, []).append((operand.offset[0], number))
    return [number for found in planes.values() for _, number in sorted(found)[-rows:]]


def _function(
    writer: _Writer,
    stores: list[tuple[int, str]],
    fetched: list[int],
    shifted: Mapping[str, Reach],
    past: Sequence[int],
) -> str:
    """The text of a module with the function `rows`, which the driver calls."""
    lanes, numbers = writer.lanes, range(len(writer.operands))
    prefetched = [(number, isinstance(writer.operands[number], Write)) for number in fetched if number not in past]
    early = [number for number, operand in enumerate(writer.operands) if isinstance(operand, Later)]
    stored, back = whole_stores(lanes, stores, past, prefetches([(number, True) for number in past]))
    body = (*prefetches(prefetched), *early_prefetches(early), *whole(lanes, writer.code, shifted), *stored)
    return "\n".join(
        [
            *_declarations(lanes, writer.permuting and writer.looks_up),
            "",
            "define void @rows(ptr %p, ptr %s, i64 %ny, i64 %nx) #0 {",
            *_start(lanes, numbers, shifted, past),
            *_line(numbers, writer.before),
            *_vectors(lanes, body, back),
            *_rest(writer, stores),
            *_next(numbers),
            "}",
            "",
            lanes.attributes,
            *([PAST] if past else []),
            "",
        ]
    )


def _start(lanes: Lanes, numbers: range, shifted: Mapping[str, Reach], past: Sequence[int]) -> list[str]:
    """The addresses of all operands, and the lanes of the last vector of a line, which may have fewer cells."""
    cells = ", ".join(f"i32 {cell}" for cell in range(lanes.count))
    return [
        "start:",
        *(line for i in numbers for line in lanes.operand(i)),
        f"  %bytes = mul i64 %nx, {lanes.size}",
        f"  %whole = and i64 %bytes, -{lanes.bytes}",
        f"  %cells = and i64 %nx, {lanes.count - 1}",
        "  %few = trunc i64 %cells to i32",
        f"  %few.1 = insertelement <{lanes.count} x i32> poison, i32 %few, i64 0",
        f"  %few.all = shufflevector <{lanes.count} x i32> %few.1, <{lanes.count} x i32> poison, "
        f"<{lanes.count} x i32> zeroinitializer",
        f"  %mask = icmp ult <{lanes.count} x i32> <{cells}>, %few.all",
        *(f"  {line}" for line in (*ends(lanes, shifted), *on_lines(past))),
        "  %none = icmp sle i64 %ny, 0",
        "  br i1 %none, label %end, label %line",
    ]


def _line(numbers: range, before: Sequence[str]) -> list[str]:
    """The head of the loop over lines; before: what is the same for all vectors of a line."""
    return [
        "line:",
        "  %y = phi i64 [ 0, %start ], [ %y.next, %next ]",
        *(f"  %l{i} = phi ptr [ %b{i}, %start ], [ %l{i}.next, %next ]" for i in numbers),
        *(f"  {line}" for line in before),
        "  %long = icmp ne i64 %whole, 0",
        "  br i1 %long, label %enter, label %rest",
    ]


def _vectors(lanes: Lanes, body: Sequence[str], back: str) -> list[str]:
    """The loop over the whole vectors of a line; back: the block that ends it."""
    return [
        "enter:",
        "  br label %vectors",
        "vectors:",
        f"  %x = phi i64 [ 0, %enter ], [ %x.next, %{back} ]",
        f"  %x.next = add i64 %x, {lanes.bytes}",
        "  %first = icmp eq i64 %x, 0",
        "  %more = icmp ult i64 %x.next, %whole",
        *(f"  {line}" for line in body),
        "  br i1 %more, label %vectors, label %rest",
    ]


def _rest(writer: _Writer, stores: Sequence[tuple[int, str]]) -> list[str]:
    """The last vector of a line, if some cells are left."""
    if writer.lanes.count == 1:
        return ["rest:", "  br label %next"]
    renamed = [(number, _renamed(value)) for number, value in stores]
    return [
        "rest:",
        "  %all = icmp eq i64 %cells, 0",
        "  br i1 %all, label %next, label %last",
        "last:",
        *(f"  {_renamed(line)}" for line in masked(writer.lanes, writer.code)),
        *(f"  {line}" for line in masked_stores(writer.lanes, renamed)),
        "  br label %next",
    ]


def _next(numbers: range) -> list[str]:
    """The end of the loop over lines."""
    return [
        "next:",
        *(f"  %l{i}.next = getelementptr i8, ptr %l{i}, i64 %s{i}" for i in numbers),
        "  %y.next = add i64 %y, 1",
        "  %again = icmp slt i64 %y.next, %ny",
        "  br i1 %again, label %line, label %end",
        "end:",
        "  ret void",
    ]


def _is_new(operand: Operand, fields: frozenset[str]) -> bool:
    """True for the new value of one of some fields."""
    return isinstance(operand, Write) and operand.field in fields


def _in_planes(writer: _Writer, operand: Operand) -> bool:
    """True for an operand whose values fill a plane."""
    return isinstance(operand, Write) or (
        isinstance(operand, Read) and len(writer.problem.fields[operand.field].axes) == 3
    )


def _declarations(lanes: Lanes, permuted: bool) -> list[str]:
    """The functions of LLVM that a module may call."""
    vector, mask, words = lanes.vector, lanes.mask, lanes.words
    return [
        f"declare {vector} @llvm.sqrt.{lanes.suffix}({vector})",
        f"declare {vector} @llvm.fabs.{lanes.suffix}({vector})",
        f"declare {vector} @llvm.masked.load.{lanes.suffix}.p0(ptr, i32, {mask}, {vector})",
        f"declare {words} @llvm.masked.load.{lanes.words_suffix}.p0(ptr, i32, {mask}, {words})",
        f"declare void @llvm.masked.store.{lanes.suffix}.p0({vector}, ptr, i32, {mask})",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        *(entry_functions(lanes) if permuted else ()),
    ]


def _renamed(line: str) -> str:
    """A line of a vector's code as it stands for the last one: values have names of their own."""
    return line.replace("%v", "%w").replace("i64 %x", "i64 %whole")


def _bits(value: float, dtype: str) -> str:
    """A number as LLVM reads it: the bits of the double that the rounded value is."""
    rounded = float(np.dtype(dtype).type(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"

"""Structs of the skeletons as NumPy dtypes, read from the text that compilers read."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from peergrid.codegen.cuda.skeletons import skeleton

KINDS = {"int": "<i4", "long long": "<i8", "unsigned long long": "<u8", "double": "<f8"}
ADDRESS = "<u8"
STATEMENT = re.compile(r"(?:const )?(?P<kind>(?:unsigned )?long long|\w+)\s*(?P<members>.*)", re.DOTALL)
MEMBER = re.compile(r"(?P<pointer>\*?)\s*(?P<name>\w+)(?P<extents>(?:\[\w+\])*)")


class Member(NamedTuple):
    """A member of a struct: the type as written, the name, and the extents of an array, numbers or names of such."""

    kind: str
    name: str
    extents: tuple[str, ...]


def layout_of(file: str, struct: str, **known: Any) -> np.dtype[Any]:
    """The dtype of a struct in a file of the skeletons.

    known: types and numbers that the text names and something else defines, and the macros that are defined.
    """
    defined = frozenset(name for name, value in known.items() if value is True)
    kinds = KINDS | {"*": ADDRESS} | known
    members = (
        (one.name, kinds[one.kind], tuple(int(known.get(extent, extent)) for extent in one.extents))
        for one in _members(file, struct, defined)
    )
    return np.dtype(list(members), align=True)


@cache
def _members(file: str, struct: str, defined: frozenset[str]) -> tuple[Member, ...]:
    """The members of a struct, which come before its functions, in order; defined: the macros under which parts of it
    count.
    """
    found = re.search(rf"struct (?:__align__\(\d+\) )?{struct} \{{([^}}]*?)(?:__device__|\}})", skeleton(file))
    if found is None:
        raise ValueError(f"The file {file} has no struct {struct}.")
    body = re.sub(r"//.*", "", found[1])
    body = re.sub(r"#ifdef (\w+)(.*?)#endif", lambda part: part[2] if part[1] in defined else "", body, flags=re.DOTALL)
    members = list[Member]()
    for statement in filter(None, map(str.strip, body.split(";"))):
        line = STATEMENT.fullmatch(statement)
        assert line is not None, f"{statement} declares no members"
        for member in MEMBER.finditer(line["members"]):
            extents = tuple(re.findall(r"\w+", member["extents"]))
            members.append(Member("*" if member["pointer"] else line["kind"], member["name"], extents))
    return tuple(members)

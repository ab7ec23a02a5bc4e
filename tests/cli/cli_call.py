"""A small model and what a call of the command line leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MODEL = """
[grid]
size = [0.06, 0.04]
spacing = 0.001
steps = 30

[[material]]
name = "sand"
permittivity = 4.0
conductivity = 0.01

[[shape]]
kind = "box"
material = "sand"
lower = [0.0, 0.0]
upper = [0.06, 0.02]

[[source]]
kind = "line"
position = [0.03, 0.025]
waveform = { kind = "ricker", frequency = 4e9 }

[[receiver]]
position = [0.04, 0.025]

[absorber]
cells = 6

[output]
snapshots = 10
pictures = false
"""


@dataclass(frozen=True)
class Answer:
    """What a call left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


Call = Callable[..., Answer]

"""The catalogue of generated CUDA kernels: `problems` and `cases` say what is in it, `texts` what a case compiles,
`measure` what compilers say of it, `record` how it is kept, `compare` what changed; `sample` and `library` compile some
of it by another NVRTC.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks" / "results" / "kernels.json"

sys.path += [str(ROOT / folder) for folder in ("tests/runtime", "tests/codegen", "benchmarks/cuda")]

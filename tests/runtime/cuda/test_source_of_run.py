"""What is printed as the source of a run is what the run compiles, text by text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS, yee_with_absorber

from peergrid import Options
from peergrid.bench.problems import radar
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.sources.cuda import each_part_once, texts_of_run
from peergrid.stencil import Problem

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
REGISTERS = 150
RUNS: tuple[tuple[Callable[[], Problem], StrategyName, int, int], ...] = (
    (lambda: radar(300, 300, 20), "overlap", 1, 1),
    (lambda: radar(300, 300, 20), "overlap", 4, 1),
    (lambda: radar(300, 300, 20), "peer", 2, 2),
    (lambda: radar(200, 200, 20), "persistent", 2, 1),
    (lambda: yee_with_absorber((60, 70)), "serial", 2, 2),
    (PROBLEMS["heat_cube"], "overlap", 1, 2),
    (PROBLEMS["string"], "overlap", 2, 2),
)


@pytest.mark.parametrize(("make", "strategy", "depth", "devices"), RUNS)
def test_printed_is_compiled(make: Callable[[], Problem], strategy: StrategyName, depth: int, devices: int) -> None:
    problem, options = make(), Options(strategy, depth)
    plan = layout(problem, Partition(problem.grid, (devices,) + (1,) * (problem.grid.ndim - 1)), options)
    driver = HostDriver(registers=REGISTERS)
    executor = CudaExecutor(plan, depth, tuple(range(devices)), driver=driver)
    executor.prepare(one_iteration(plan, options))
    executor.close()
    gpu = replace(H200, multiprocessors=driver.blocks)
    found = list(texts_of_run(plan, options, gpu, lambda text, kernel: REGISTERS))
    assert {expanded(text) for _, text in found} == set(driver.texts)
    for head, text in found:
        names = [line.split(":")[0].removeprefix("// ") for line in head.splitlines()]
        assert head.startswith("// Signals") or all(re.search(rf"\b{name}\(const", expanded(text)) for name in names)
        assert names


def test_a_radar_is_a_few_hundred_lines() -> None:
    """What Python writes for a problem: constants, and each update once."""
    problem = radar(300, 300, 20)
    plan = layout(problem, Partition(problem.grid, (1, 1)), Options("overlap", 8))
    texts = [text for _, text in texts_of_run(plan, Options("overlap", 8), H200, lambda text, kernel: REGISTERS)]
    lines = "\n".join(each_part_once(texts)).count("\n")
    assert 300 < lines < 550
    assert all("#include" not in expanded(text) for text in texts)


def test_parts_of_several_texts_are_printed_once() -> None:
    first, second = "one\ntwo\nthree\n\nfour\n\nfive\n", "six\n\none\ntwo\nthree\n\nfour\n"
    assert list(each_part_once([first, second])) == [first, "six\n\n// 3 lines as above\n\nfour\n"]

"""Simulations in a service: shared by threads, forgotten open, closed from elsewhere."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import peergrid
from peergrid import Grid, Problem, Simulation


@peergrid.stencil
def drift(u, k):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[0, 0] + k * (u[1, 0] - u[0, 0])


PROBLEM = Problem.of(drift(Grid((20, 16)).field("u", np.arange(320.0).reshape(20, 16)), k=0.1))


def test_threads_that_share_a_simulation_take_turns() -> None:
    with Simulation(PROBLEM, 200, devices="cpu:2") as simulation, ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(call) for _ in range(20) for call in (lambda: simulation.run(10), simulation.sha256)]
        for look in looks:
            look.result()
        assert simulation.sha256() == peergrid.run(PROBLEM, 200, devices="cpu:1").sha256


def test_closing_waits_for_a_run_in_another_thread() -> None:
    simulation, entered = Simulation(PROBLEM, 4, devices="cpu:1"), threading.Event()
    execute = simulation._executor.execute

    def slow(*arguments: object) -> None:
        entered.set()
        assert not closing.wait(0.05)
        execute(*arguments)  # type: ignore[arg-type]

    closing = threading.Event()
    simulation._executor.execute = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        stepping = pool.submit(simulation.run, 4)
        entered.wait()
        simulation.close()
        closing.set()
        stepping.result()
    assert simulation.step == 4


def test_the_folder_of_compiled_code_may_be_a_text(tmp_path: Path) -> None:
    Simulation(PROBLEM, 4, devices="cpu:1", cache=str(tmp_path)).close()
    assert list(tmp_path.glob("peergrid_rows_*.o"))


def test_a_simulation_forgotten_open_leaves_no_threads_and_no_memory() -> None:
    threads = threading.active_count()
    simulation = Simulation(PROBLEM, 4, devices="cpu:2")
    simulation.run(4)
    assert threading.active_count() > threads
    executor = weakref.ref(simulation._executor)
    del simulation
    gc.collect()
    assert threading.active_count() == threads
    assert executor() is None


def test_a_forked_process_is_told_that_the_simulation_is_not_its_own() -> None:
    """Its threads are in the process that made it alone: whoever waited for them here would wait for ever."""
    with Simulation(PROBLEM, 4, devices="cpu:2") as simulation:
        simulation.run(2)
        child = os.fork()
        if not child:
            try:
                simulation.run(2)
            except peergrid.UsageError:
                simulation.close()
                os._exit(7)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        simulation.run(2)


def test_the_digest_does_not_depend_on_the_bits_of_values_that_are_not_numbers() -> None:
    found = set()
    for value in (np.nan, -np.nan):
        problem = Problem.of(drift(Grid((20, 16)).field("u", value), k=0.1))
        with Simulation(problem, 1, devices="cpu:2") as simulation:
            assert np.signbit(simulation.gather("u")).all() == np.signbit(value)
            found.add(simulation.sha256())
    assert len(found) == 1

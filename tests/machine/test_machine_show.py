"""Text, picture and JSON of made-up machines."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from machine_examples import gpu, with_gpus, without_gpu

from peergrid.errors import UsageError
from peergrid.machine import Machine, decode, encode, picture, text, units
from peergrid.machine.text import binding

MACHINES = [without_gpu(), with_gpus(2, switched=False), with_gpus(8, switched=True)]


@pytest.mark.parametrize("machine", MACHINES, ids=["none", "two", "eight"])
def test_json_goes_both_ways(machine: Machine) -> None:
    assert decode(Machine, encode(machine)) == machine


@pytest.mark.parametrize("machine", MACHINES, ids=["none", "two", "eight"])
def test_picture_is_xml_and_holds_everything_inside(machine: Machine) -> None:
    tree = ElementTree.fromstring(picture(machine))
    _, _, width, height = (float(value) for value in tree.attrib["viewBox"].split())
    for box in tree.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
    words = "".join(tree.itertext())
    assert all(f"GPU {gpu.index}" in words for gpu in machine.gpus)


def test_text_without_gpu_says_why() -> None:
    assert "GPUs: no driver library" in text(without_gpu())


def test_text_shows_the_tree_the_links_and_the_settings() -> None:
    shown = text(with_gpus(8, switched=True))
    assert "GPU 7: NVIDIA H200, capability 9.0" in shown
    assert "GPU 0 – the switch: 18 × NVLink switch 4, 450 GB/s each way" in shown
    assert "costs: everything goes through the host" in shown
    assert "bridge 0000:07:01.0" in shown


@pytest.mark.parametrize(
    ("near", "bound", "usable", "said"),
    [
        (
            (0, 1),
            False,
            range(4),
            "this process is not bound to the CPUs near it; a run binds the thread that serves it",
        ),
        ((0, 1), True, range(2), "this process is bound to the CPUs near it, and so is a run"),
        ((0, 1), False, range(2, 4), "this process may not use the CPUs near it, and neither may a run"),
        ((), False, range(4), "the CPUs near it are unknown, so a run binds no threads"),
    ],
)
def test_who_runs_near_a_gpu(near: tuple[int, ...], bound: bool, usable: range, said: str) -> None:
    assert binding(replace(gpu(0, 0), near_cpus=near, bound=bound), usable) == said


def test_a_direct_link_is_written_once() -> None:
    assert len(re.findall(r"2 × NVLink 2", text(with_gpus(2, switched=False)))) == 1


def test_access_that_does_not_work_is_a_fault() -> None:
    assert "FAULT" not in text(with_gpus(2, switched=False)).split("yes:")[0]
    assert "FAULT" in text(with_gpus(2, switched=False, broken=((0, 1),))).split("yes:")[0]


def test_a_damaged_value_is_named() -> None:
    data = encode(without_gpu())
    data["cpu"]["cores"] = "many"
    with pytest.raises(UsageError) as error:
        decode(Machine, data, "machine")
    assert str(error.value) == (
        "machine.cpu.cores should hold an integer, but holds 'many': measure the profile again."
    )


def test_peers_keep_their_numbers_where_a_gpu_is_lost() -> None:
    whole = with_gpus(3, switched=True, broken=((2, 0),))
    left = tuple(peer for peer in whole.peers if 1 not in (peer.source, peer.target))
    found = replace(whole, gpus=(whole.gpus[0], whole.gpus[2]), peers=left)
    shown = text(found)
    assert "       0       2\n" in shown
    assert "     0       –  atomic\n" in shown
    assert "     2   FAULT       –\n" in shown


def test_a_lost_entry_is_named() -> None:
    data = encode(without_gpu())
    del data["software"]["cuda"]
    with pytest.raises(UsageError) as error:
        decode(Machine, data, "machine")
    assert str(error.value) == (
        "machine.software should hold an entry 'cuda', but holds none: measure the profile again."
    )


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (3.96e11, "B/s", "396 GB/s"),
        (4.1e-6, "s", "4.1 µs"),
        (0.0, "s", "0 s"),
        (644.0, "cycles", "644 cycles"),
        (1234.5, "B/s", "1.23 kB/s"),
        (float("nan"), "s", "– s"),
        (0.01234, "", "0.0123"),
        (1.37e9, "atomics/s", "1.37 G atomics/s"),
        (12.0, "atomics/s", "12 atomics/s"),
    ],
)
def test_quantities(value: float, unit: str, shown: str) -> None:
    assert units.quantity(value, unit) == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0 B"), (1, "1 B"), (2 << 20, "2 MiB"), (141 << 30, "141 GiB")])
def test_sizes(value: int, shown: str) -> None:
    assert units.size(value) == shown

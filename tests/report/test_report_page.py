"""The page: complete, alone, well formed, and true to the profile."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_examples import host_only, outcome, two_gpus
from report_examples import number as made

from peergrid.cli.report import report
from peergrid.errors import UsageError
from peergrid.machine import Cache
from peergrid.probe import profile as profiles
from peergrid.probe.experiment import Measurement, result
from peergrid.probe.profile import Profile
from peergrid.report import page
from peergrid.report.draw import Cell, curves, heat
from peergrid.report.figures import error, label, number
from peergrid.report.follows import follows
from peergrid.report.glance import glance
from peergrid.report.papers import PAPERS
from peergrid.report.views import GROUPS, VIEWS


def number_at(quantity: str, value: float, **at: str) -> Measurement:
    """A number of seconds on two threads."""
    return made(quantity, "s", value, threads=2, **at)


VOID = {"meta", "link", "br", "path", "rect", "circle", "polyline"}
PROFILES = {"host": host_only(), "gpus": two_gpus()}


class Reader(HTMLParser):
    """Collects tags and text, and fails on tags that do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)


def read(profile: Profile) -> Reader:
    reader = Reader()
    reader.feed(page(profile))
    assert reader.open == []
    return reader


@pytest.mark.parametrize("name", PROFILES)
def test_it_is_alone_and_runs_nothing(name: str) -> None:
    content = page(PROFILES[name])
    assert "script" not in read(PROFILES[name]).tags
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(https?:[^"\')\s>]*)', content)
    assert outside == []
    assert 'name="viewport"' in content


@pytest.mark.parametrize("name", PROFILES)
def test_every_experiment_and_every_status_is_there(name: str) -> None:
    words = " ".join(read(PROFILES[name]).text)
    for item in PROFILES[name].probes:
        assert item.title in words
        assert item.reason in words


def test_numbers_arrive() -> None:
    words = " ".join(read(two_gpus()).text)
    for shown in ("400 GB/s", "Invented by a later version", "through the host"):
        assert shown in words, shown


def test_the_key_figures_come_first() -> None:
    found = {key.what: key.number for key in glance(two_gpus())}
    assert found["GPU to GPU"] == "101–400 GB/s"
    assert found["Barrier of 2 GPUs"] == "4.04 µs"
    assert {key.what for key in glance(host_only())} == {"Main memory"}


def test_an_experiment_that_broke_is_named_at_the_top() -> None:
    broken = outcome("links", status="timeout", reason="it took longer than 30 s")
    head = page(replace(two_gpus(), probes=(*two_gpus().probes, broken))).split("</header>")[0]
    assert "Not measured: links-x (timeout: it took longer than 30 s)." in head
    assert "Not measured" not in page(host_only())


def test_experiments_without_numbers_are_listed_by_their_reason() -> None:
    some = [replace(outcome("links", status="impossible", reason="no <GPU>"), title=title) for title in ("One", "Two")]
    content = page(replace(host_only(), probes=tuple(some)))
    assert "<p>Impossible: no &lt;GPU&gt;:</p><ul><li>One</li><li>Two</li></ul>" in content
    assert "Beside the documents" not in content


def test_what_an_experiment_lacks_stands_beside_it() -> None:
    part = replace(outcome("links", number_at("message_time", 1.0)), reason="near and far memory: one node")
    assert "<p>Not given: near and far memory: one node.</p>" in page(replace(two_gpus(), probes=(part,)))


def test_coordinates_in_words() -> None:
    assert label({"pattern": "left-right", "separated": "no", "devices": 2}) == "left-right, not separated, GPUs 2"
    assert label({"route": "store", "ways": 2}) == "store, both ways"
    assert label({"modifier": "cg"}) == "by ld.cg, which stays in an L2"
    assert label({"bytes": 1 << 20, "fence": "without"}) == "bytes 1 MiB, fence without"


@pytest.mark.parametrize(
    ("median", "uncertainty", "shown", "share"),
    [
        (81920000.0, 0.0, "81\u202f920\u202f000", "0"),
        (0.5, 0.001, "0.5", "0.2 %"),
        (1430.0, 143.0, "1\u202f430", "10 %"),
    ],
)
def test_counts_and_shares(median: float, uncertainty: float, shown: str, share: str) -> None:
    item = Measurement("q", "", {}, median, 0.0, uncertainty, (median,))
    assert (number(item), error(item)) == (shown, share)


def test_groups_with_numbers_come_first() -> None:
    for profile, first in ((host_only(), "host"), (two_gpus(), "links")):
        assert re.findall(r'<section id="([^"]*)"', page(profile))[0] == first


def test_lone_points_name_no_line() -> None:
    points = [number_at("host_barrier", 1.0, kind="spin")]
    points += [replace(item, at=item.at | {"threads": 2**at}) for at, item in enumerate(points * 3)]
    alone = replace(points[0], at={"kind": "python", "threads": 4})
    shown = page(replace(two_gpus(), probes=(outcome("host", *points[1:], alone),)))
    assert 'class="curve"' in shown
    assert '<figcaption class="legend"></figcaption>' in shown


def test_a_curve_of_single_points_is_a_table() -> None:
    lone = outcome(
        "host", *(number_at("host_barrier", value, kind=kind) for kind, value in (("spin", 1), ("python", 2)))
    )
    shown = page(replace(two_gpus(), probes=(lone,))).split('id="host"')[1].split("</section>")[0]
    assert "<svg" not in shown
    assert "python" in shown


def test_answers_are_words() -> None:
    asked = outcome("memory", result("remote_cached", "", [1.0], {"level": "L1 of the reader"}, floor=0.0))
    reader = read(replace(two_gpus(), probes=(asked,)))
    assert "L1 of the reader yes" in " ".join(reader.text)


def test_answers_are_asked_in_a_sentence() -> None:
    whole = result("stream_waits", "", [0.0], {"stream": "default", "for": "blocking"}, floor=0.0)
    part = result("stream_waits", "", [1.0], {"stream": "default"}, floor=0.0)
    words = " ".join(read(replace(two_gpus(), probes=(outcome("memory", whole, part),))).text)
    assert "in default, for one in blocking no default yes" in words


def test_the_machine_says_what_follows_for_buffers_threads_and_settings() -> None:
    words = " ".join(read(two_gpus()).text)
    assert "GPU 0-1: buffers shared with the host: device" in words
    assert "GPU 0-1: the CPUs near it are unknown, so a run binds no threads" in words
    assert "Settings in force that cost performance: NCCL_P2P_DISABLE=1: through the host" in words
    assert "Other settings" not in words


def test_the_host_stands_in_one_line() -> None:
    machine = host_only().machine
    caches = (Cache(1, "Data", 32 << 10, 64, 4, 1), Cache(1, "Instruction", 32 << 10, 64, 4, 1))
    cpu = replace(machine.cpu, caches=(*caches, Cache(3, "Unified", 8 << 20, 64, 1, 4)))
    words = " ".join(read(replace(host_only(), machine=replace(machine, cpu=cpu))).text)
    assert "host cores threads may use memory L1 L3 Some CPU 4 4 0-1 16 GiB 4 × 32 KiB 1 × 8 MiB" in words


def test_text_of_a_profile_cannot_become_markup() -> None:
    assert "no <driver>" in "".join(read(host_only()).text)
    assert "no <driver>" not in page(host_only())


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("group", GROUPS)
def test_two_sentences_per_group(name: str, group: str) -> None:
    told = follows(PROFILES[name], group)
    assert len(re.findall(r"[.](?: |$)", told)) == 2, told


def test_nothing_is_concluded_from_a_number_that_moves_by_more_than_half() -> None:
    """Main memory at 28.9 GB/s ± 144 GB/s says nothing of the machine."""

    def shaken(item: Measurement) -> Measurement:
        wild = item.quantity == "host_copy_bandwidth"
        return replace(item, uncertainty=5 * item.median) if wild else item

    quiet = host_only()
    probes = tuple(replace(one, results=tuple(map(shaken, one.results))) for one in quiet.probes)
    found = replace(quiet, probes=probes)
    assert "Main memory moves" in follows(quiet, "host")
    told = follows(found, "host")
    assert "Main memory moves" not in told
    assert "nothing is concluded from that; measure again on a quiet machine" in told
    assert "Main memory" not in {key.what for key in glance(found)}


def test_one_gpu_has_no_barrier_over_several() -> None:
    probes = tuple(
        replace(item, results=tuple(replace(one, at=one.at | {"devices": 1}) for one in item.results))
        for item in two_gpus().probes
    )
    alone = replace(two_gpus(), probes=probes)
    assert "A barrier over several GPUs was not measured." in follows(alone, "synchronisation")
    assert not [key for key in glance(alone) if "1 GPU" in key.what]


def test_what_follows_depends_on_the_numbers() -> None:
    assert "GPU 1 to 0" in follows(two_gpus(), "links")
    assert "a flag overtook its data" in follows(two_gpus(), "atomics and order")
    assert "a new kernel per step is cheaper" in follows(two_gpus(), "synchronisation")
    assert "4.3 times" in follows(two_gpus(), "memory")
    assert "one word takes 1.41 G atomics/s from its GPU and 374 M atomics/s remotely." in follows(
        two_gpus(), "atomics and order"
    )
    assert "costs 4.04 µs in memory and 9.09 µs by a thread per GPU, so" in follows(two_gpus(), "synchronisation")
    assert "With 17 in flight it costs no more than a single own one" in follows(two_gpus(), "memory")
    assert "from 17.8 KiB on, 2.0 times the prediction: the model is no guide" in follows(two_gpus(), "model")


def test_a_slow_link_is_flagged_on_the_page() -> None:
    flag = re.findall(r'<p class="slow">(.*?)</p>', page(two_gpus()))[0]
    assert flag == (
        "Slow: peer copy bandwidth: 101 GB/s at route copy engine, ways 1, source 1, target 0; expected are about "
        "396 GB/s (measured on 8 × H200)."
    )


def test_many_slow_numbers_of_one_kind_are_one_line() -> None:
    pairs = [
        made("peer_copy_bandwidth", "B/s", rate, route="copy engine", ways=1, source=source, target=1 - source)
        for source, rate in ((0, 1e11), (1, 0.5e11))
    ]
    (flag,) = re.findall(r'<p class="slow">(.*?)</p>', page(replace(two_gpus(), probes=(outcome("links", *pairs),))))
    assert flag.startswith("Slow: peer copy bandwidth: 2 numbers, at worst 50.5 GB/s at route copy engine")


def test_ratios_that_should_be_one_are_one_sentence() -> None:
    ratios = [
        result("traffic_ratio", "", [value], {"route": route, "ways": 1, "counter": counter}, floor=0.0)
        for route, value, counter in (("store", 1.0, "sent"), ("store", 1.004, "received"), ("host", 0.0, "sent"))
    ]
    shown = page(replace(two_gpus(), probes=(outcome("links", *ratios),)))
    words = "2 ratios differ from 1 by at most 0.4 %; through the host none of the bytes crossed a link."
    assert f"<p>{words}</p><details><summary>3 ratios</summary>" in shown
    (alone,) = [replace(two_gpus(), probes=(outcome("links", ratios[2]),))]
    assert "<p>through the host none" in page(alone)


def test_papers_stand_beside_today() -> None:
    words = " ".join(read(two_gpus()).text)
    assert "grid barrier, 2 blocks per multiprocessor, 256 threads" in words
    for shown in ("V100", "1.5 µs", "1.83 µs", "not measured"):
        assert shown in words
    assert "grid barrier, 1 block per multiprocessor, 256 threads 1.5 µs 1.83 µs 1.01 µs" in words
    assert "× 0.673" in words


def test_the_tables_are_sound() -> None:
    assert len({view.quantity for view in VIEWS}) == len(VIEWS)
    assert {paper.group for paper in PAPERS} <= set(GROUPS)


def test_a_heat_map_has_all_cells_and_one_prefix() -> None:
    shown = heat({("0", "1"): Cell(3.96e11, "1 %"), ("1", "0"): Cell(1e11, "2 %")}, ["0", "1"], ["0", "1"], "a", "B/s")
    assert shown.count("<td") == 4
    assert 'title="± 2 %"' in shown
    assert shown.count("--heat:8%") == shown.count("--heat:60%") == 1
    assert "GB/s" in shown
    assert ">396<" in shown
    assert shown.count(">–<") == 2


def test_noise_is_no_pattern_in_a_heat_map() -> None:
    shown = heat({("0", "1"): Cell(3.96e11, ""), ("1", "0"): Cell(3.94e11, "")}, ["0", "1"], ["0", "1"], "", "B/s")
    assert min(int(share) for share in re.findall(r"--heat:(\d+)%", shown)) > 50


def test_a_matrix_of_zeros() -> None:
    shown = heat({("own", "one"): Cell(0.0, "0")}, ["own"], ["one"], "", "", shaded=False)
    assert ">0<" in shown
    assert "--heat" not in shown


def test_curves_keep_every_point_inside() -> None:
    drawn = curves({"a": [(1, 1e9), (1024, 4e11)], "b": [(1, -1.0), (4, 2e9)]}, "bytes", "B/s", x_in_bytes=True)
    points = [tuple(map(float, p.split(","))) for text in re.findall(r'points="([^"]*)"', drawn) for p in text.split()]
    assert len(points) == 3
    assert all(0 <= x <= 640 and 0 <= y <= 330 for x, y in points)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((260.0, 680.0, 1950.0), ["200", "500", "1000", "2000"]),  # both ends are near a round number
        ((8.5e-6, 11.2e-6), ["9", "10"]),
        ((2.3e-6, 7e-4), ["10", "100", "1000"]),  # microseconds: the prefix of the middle
        ((1e9, 3.96e11), ["1", "10", "100"]),
    ],
)
def test_curves_have_round_labels(values: tuple[float, ...], labels: list[str]) -> None:
    drawn = curves({"": list(enumerate(values, 1))}, "threads", "s" if values[0] < 1 else "B/s")
    shown = re.findall(r'<text class="tick end"[^>]*>([^<]*)<', drawn)
    assert shown == labels


def test_curves_of_nothing() -> None:
    assert "No positive number" in curves({"a": [(0, 1)]}, "bytes", "s")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiles.write(tmp_path / "p.json", two_gpus())
    report(tmp_path / "p.json", tmp_path / "r.html")
    said = capsys.readouterr()
    assert said.out.startswith(f"{tmp_path / 'r.html'}: ")
    assert said.err == ""
    assert (tmp_path / "r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match="create it first"):
        report(tmp_path / "p.json", tmp_path / "none" / "r.html")


@pytest.mark.parametrize("what", ["a profile", "notes", "a folder"])
def test_a_page_replaces_nothing_but_a_page(what: str, tmp_path: Path) -> None:
    source, place = tmp_path / "p.json", tmp_path / "r.html"
    profiles.write(source, host_only())
    if what == "a profile":
        place = source
    elif what == "notes":
        place.write_text("my notes")
    else:
        place.mkdir()
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.is_file()]
    with pytest.raises(UsageError, match=r"free or a (page|file) to replace, "):
        report(source, place)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.is_file()] == before


def test_a_page_replaces_an_earlier_page(tmp_path: Path) -> None:
    profiles.write(tmp_path / "p.json", host_only())
    for _ in range(2):
        report(tmp_path / "p.json", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count("<h1>") == 1


def test_numbers_that_no_axis_can_hold_are_left_out() -> None:
    wild = [
        replace(item, median=value) for item, value in zip(host_only().results(), (1e-200, 1e300, 5e-324), strict=True)
    ]
    assert "<svg" in page(replace(host_only(), probes=(outcome("host", *wild),)))


def test_a_matrix_per_other_coordinate() -> None:
    words = " ".join(read(two_gpus()).text)
    assert "From row to column" in words
    assert "<h4>From row to column</h4>" in page(two_gpus())  # a coordinate that never varies names nothing


def test_names_of_groups_are_text() -> None:
    profile = PROFILES["host"]
    evil = '"><script>alert(1)</script>'
    probes = tuple(replace(outcome, group=evil) for outcome in profile.probes)
    assert "script" not in read(replace(profile, probes=probes)).tags

"""Surveys as data: where each trace has its antennas, and the sentences about surveys that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.models import parse
from peergrid.models.fdtd import RadarModel
from peergrid.models.survey import distances, surveyed, traces

MODEL = """
[grid]
size = [1.0, 0.5]
spacing = 0.01
steps = 20
periodic = ["x"]
[[source]]
kind = "plane_wave"
direction = "-y"
position = 0.3
waveform = { kind = "ricker", frequency = 6e8 }
[[source]]
kind = "line"
position = [0.2, 0.2]
waveform = { kind = "ricker", frequency = 6e8 }
[[receiver]]
position = [0.4, 0.2]
[[receiver_array]]
first = [0.5, 0.2]
last = [0.6, 0.2]
count = 3
[survey]
"""


def read(survey: str) -> RadarModel:
    model = parse(MODEL + survey)
    assert isinstance(model, RadarModel)
    return model


def places(model: RadarModel) -> list[tuple[float, float, float]]:
    """The x of source, receiver and the end of the array in each trace."""
    found = []
    for one in traces(model):
        assert one.survey is None
        assert one.sources[0] == model.sources[0], "a plane wave stays"
        line, receiver, array = one.sources[1], one.receivers[0], one.receiver_arrays[0]
        assert {line.position[1], receiver.position[1], array.last[1]} == {0.2}
        assert array.last[0] - array.first[0] == pytest.approx(0.1)
        found.append((line.position[0], receiver.position[0], array.last[0]))
    return found


@pytest.mark.parametrize(
    ("survey", "expected"),
    [
        ('kind = "common_offset"\ntraces = 3\nstep = [0.1, 0.0]', [(0.2, 0.4, 0.6), (0.3, 0.5, 0.7), (0.4, 0.6, 0.8)]),
        ('kind = "common_midpoint"\ntraces = 2\nstep = [0.1, 0.0]', [(0.2, 0.4, 0.6), (0.1, 0.5, 0.7)]),
        (
            'kind = "steps"\ntraces = 2\nsource_step = [0.0, 0.0]\nreceiver_step = [-0.1, 0.0]',
            [(0.2, 0.4, 0.6), (0.2, 0.3, 0.5)],
        ),
        ('kind = "positions"\nsources = [[0.7, 0.2], [0.1, 0.2]]', [(0.7, 0.4, 0.6), (0.1, 0.4, 0.6)]),
        ('kind = "positions"\nsources = [[0.3, 0.2]]\nreceivers = [[0.1, 0.2]]', [(0.3, 0.1, 0.3)]),
    ],
)
def test_antennas_are_where_a_survey_has_them(survey: str, expected: list[tuple[float, ...]]) -> None:
    for found, wanted in zip(places(read(survey)), expected, strict=True):
        assert found == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("survey", "sentence"),
    [
        (
            'kind = "common_offset"\ntraces = 0\nstep = [0.1, 0.0]',
            "survey.traces is expected to be a whole number",
        ),
        (
            'kind = "common_offset"\ntraces = 2\nstep = [0.1, 0.0, 0.0]',
            "survey.step is expected to have a number for each of the 2 axes, got 3; correct it.",
        ),
        (
            'kind = "positions"\nsources = [[0.3, 0.2]]\nreceivers = [[0.3, 0.2], [0.4, 0.2]]',
            "survey.receivers is expected to hold as many positions as survey.sources, got 2 for 1; ",
        ),
        (
            'kind = "common_offset"\ntraces = 5\nstep = [0.0, 0.1]',
            "survey, trace 4: source[2].position is expected to lie in the grid of 1 by 0.5 m and off its walls, got",
        ),
        (
            'kind = "steps"\ntraces = 3\nsource_step = [0.0, 0.0]\nreceiver_step = [0.001, 0.0]',
            "survey: traces 1 and 2 are expected to have sources or receivers on different nodes, got the same ones",
        ),
        (
            'kind = "offsets"',
            "survey.kind is expected to be 'common_offset', 'common_midpoint', 'steps' or",
        ),
    ],
)
def test_a_survey_that_cannot_be_is_one_sentence(survey: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(survey)
    assert str(caught.value).startswith(sentence)


def test_a_survey_without_receivers() -> None:
    assert surveyed(parse(MODEL[: MODEL.index("[[receiver]]")])) is None, "a single run needs none"
    text = MODEL[: MODEL.index("[[receiver]]")] + '[survey]\nkind = "positions"\nsources = [[0.3, 0.2]]'
    with pytest.raises(UsageError, match=r"^A survey is expected to have a receiver, got none; add a "):
        parse(text)


Pairs = list[tuple[tuple[float, float], tuple[float, float]]]


def section_of(pairs: Pairs) -> tuple[str, tuple[float, ...]]:
    """The axis of the traces of one source and one receiver each."""
    ends = np.array(pairs)
    return distances(ends[:, :1], ends[:, 1])


def test_the_axis_of_a_section() -> None:
    along: Pairs = [((x, 1.0), (x + 1.0, 1.0)) for x in (2.0, 3.0)]
    assert section_of(along) == ("x of the midpoint (m)", (2.5, 3.5))
    slanted: Pairs = [((x, x), (x, x)) for x in (0.0, 3.0, 6.0)]
    assert section_of(slanted) == ("distance along the survey (m)", pytest.approx((0.0, 18**0.5, 72**0.5)))
    apart: Pairs = [((2.0 - x, 1.0), (3.0 + x, 1.0)) for x in (0.0, 1.0)]
    assert section_of(apart) == ("distance of source and receiver (m)", (1.0, 3.0))
    silent = np.array([[x, 1.0] for x in (2.0, 3.0)])
    fixed, moving = np.zeros((2, 2)), np.array([[1.0, 0.0], [2.0, 0.0]])
    assert distances(np.stack([fixed, moving], axis=1), silent) == distances(moving[:, np.newaxis], silent)
    assert distances(np.empty((2, 0, 2)), silent) == ("x of the midpoint (m)", (2.0, 3.0))

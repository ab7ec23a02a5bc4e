"""Words that count, of device and of host memory, by which queues are tied."""

from __future__ import annotations

import pytest
from host_driver import COMPILER, HostDriver

from peergrid.runtime.cuda.commands.buffer import LINE
from peergrid.runtime.cuda.device.devices import Devices, host_words
from peergrid.runtime.cuda.memory.words import FAR, FLAGS, DeviceWords, HostWords
from peergrid.schedule.ops import Flag

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@pytest.mark.parametrize("host", [True, False])
def test_every_flag_has_a_line_of_its_own(host: bool) -> None:
    """More flags than a block holds; whoever waits for any of them in host memory is let go."""
    driver = HostDriver()
    devices = Devices(driver, (0, 1))
    words = HostWords(devices) if host else DeviceWords(devices, 1)
    flags = [Flag(n % 2, f"posted by {n}") for n in range(2 * FLAGS + 3)]
    places = [words.address(flag) for flag in flags]
    assert all(abs(one - two) >= 8 * LINE for n, one in enumerate(places) for two in places[:n])
    assert places == [words.address(flag) for flag in flags]
    for count, place in enumerate(places):
        assert host_words(place, 1)[0] == 0
        host_words(place, 1)[0] = count
    if isinstance(words, HostWords):
        assert [words.value(flag) for flag in flags] == list(range(len(flags)))
        words.release()
        assert {words.value(flag) for flag in flags} == {FAR}
    devices.close()
    assert not driver.live

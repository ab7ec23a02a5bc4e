"""Forecasts for devices that are here, with a driver that stands in for CUDA's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from predict_problems import flat

from peergrid import Options
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.predict.here import forecaster_here, machine_here
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.devices import Devices


@dataclass(frozen=True)
class Described:
    """What a driver says of GPUs."""

    multiprocessors: int = 132

    def device_count(self) -> int:
        return 2

    def name(self, ordinal: int) -> str:
        return "NVIDIA H200"

    def model(self, ordinal: int) -> GpuModel:
        return replace(H200, multiprocessors=self.multiprocessors)


def driver(multiprocessors: int = 132) -> CudaDriver:
    return cast(CudaDriver, Described(multiprocessors))


def test_devices_that_nothing_is_predicted_of() -> None:
    assert machine_here(Devices("cpu", (0, 1))) is None
    assert machine_here(Devices("cuda", (0, 0)), driver()) is None


def test_gpus_have_the_figures_of_the_most_similar_machine() -> None:
    found = machine_here(Devices("cuda", (0, 1, 2)), driver(60))
    assert found is not None
    assert (found.gpus, found.multiprocessors, found.gpu) == (3, 60, "NVIDIA H200")


def test_a_forecast_for_gpus_that_are_here() -> None:
    problem = flat(512, 512)
    asked = forecaster_here(problem, Devices("cuda", (0, 1)), driver=driver(78))
    assert asked is not None
    assert asked.gpu == replace(H200, multiprocessors=78)  # so that kernels are those of the run, and chosen once
    assert asked.forecast(Options("overlap", depth=1)).seconds_per_step > 1e-6

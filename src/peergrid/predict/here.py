"""Forecasts for the devices of this machine, from the figures of the most similar known machine."""

from __future__ import annotations

from dataclasses import replace

from peergrid.codegen.cache import default_cache
from peergrid.costs.machine import Machine
from peergrid.costs.machines import LAUNCH, nearest, with_host
from peergrid.errors import PeergridError
from peergrid.grid.partition import Partition
from peergrid.predict.forecast import Forecaster
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.memory.room import gpu_model
from peergrid.runtime.devices import Devices
from peergrid.schedule import Options
from peergrid.stencil import Problem


def machine_here(devices: Devices, driver: CudaDriver | None = None) -> Machine | None:
    """The machine of some devices; None for virtual ones, for a GPU used as several devices, and if no GPU works."""
    if devices.kind == "cpu" or len(set(devices.ordinals)) < devices.count:
        return None
    try:
        found = driver or CudaDriver()
        name, model = found.name(devices.ordinals[0]), found.model(devices.ordinals[0])
    except PeergridError:
        return None
    alike = nearest(name, devices.count)
    return replace(alike, gpus=devices.count, multiprocessors=model.multiprocessors, shared_bytes=model.most_shared)


def forecaster_here(
    problem: Problem,
    devices: Devices,
    norm: str | None = None,
    split: Partition | None = None,
    driver: CudaDriver | None = None,
) -> Forecaster | None:
    """Forecasts of a problem on some devices, or None."""
    machine = machine_here(devices, driver)
    if machine is None:
        return None
    return Forecaster(problem, machine, devices.count, norm, split, model=gpu_model(devices.ordinals, driver))


def seconds_per_step(
    problem: Problem, devices: Devices, options: Options, split: Partition | None = None, norm: str | None = None
) -> float | None:
    """The predicted seconds of a step, with the speed of this host's calls; None without a prediction."""
    forecaster = forecaster_here(problem, devices, norm, split)
    if forecaster is None:
        return None
    from peergrid.runtime.cuda.calls import launch_seconds  # imports a compiler, which is slow

    try:
        factor = launch_seconds(devices.ordinals, cache=default_cache() / "cubin") / LAUNCH
        return replace(forecaster, machine=with_host(forecaster.machine, factor)).forecast(options).seconds_per_step
    except PeergridError:
        return None

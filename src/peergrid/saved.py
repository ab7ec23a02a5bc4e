"""The fields of a run as files, to which every process writes its part: no process holds a whole array."""

from __future__ import annotations

from pathlib import Path

from peergrid.arguments import brief, path_of
from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.runtime.ranks.ranks import Ranks
from peergrid.simulate import Simulation


def save(simulation: Simulation, path: Path | str) -> None:
    """Write the state fields to an HDF5 file, one dataset each, by name; all ranks call it.

    Names that HDF5 would take for paths are quoted: the dataset of a field `a/b` is `a%2Fb`.

    Every rank writes the cells of its devices into a file of its own next to it (`name.0.h5`, `name.1.h5`, …); the one
    at `path` joins them to whole arrays (virtual datasets), so move them together. Raises UsageError if they cannot be
    written.
    """
    import h5py  # imported here, as other programs do not need it

    if not isinstance(simulation, Simulation):
        raise UsageError(f"A simulation is expected, whose fields are saved, got {brief(simulation)}.")
    path, comm = path_of("path", path), simulation.comm
    rank, names = 0 if comm is None else comm.rank, simulation.problem.state
    mine = path.with_name(f"{path.stem}.{rank}.h5")
    parts = {name: simulation.own_parts(name) for name in names}
    with replacing(mine) as new, h5py.File(new, "w") as file:
        for name, found in parts.items():
            for number, (_, values) in enumerate(found):
                file.create_dataset(f"{_key(name)}/{number}", data=values)
    boxes = {name: [box for box, _ in found] for name, found in parts.items()}
    gathered = [(mine.name, boxes)] if comm is None else Ranks(comm).allgather((mine.name, boxes))
    if rank == 0:
        with replacing(path) as new, h5py.File(new, "w") as file:
            file.attrs["step"] = simulation.step
            for name in names:
                whole = simulation.problem.fields[name].box
                shown = h5py.VirtualLayout(whole.shape, simulation.problem.grid.dtype)
                for other, written in gathered:
                    for number, box in enumerate(written[name]):
                        place = _literal(f"{_key(name)}/{number}")
                        source = h5py.VirtualSource(_literal(other), place, box.shape)
                        shown[box.slices(whole.lo)] = source
                file.create_virtual_dataset(_key(name), shown)
    if comm is not None:
        Ranks(comm).gathered()  # after this a rank may read the file


def _key(name: str) -> str:
    """A name that is no path, of which `urllib.parse.unquote` makes the field's."""
    quoted = name.replace("%", "%25").replace("/", "%2F")
    return "%2E" if quoted == "." else quoted


def _literal(text: str) -> str:
    """A text in which a virtual dataset looks for no format such as `%b`."""
    return text.replace("%", "%%")

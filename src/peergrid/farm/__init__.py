"""One command over many inputs, on job slots that each run one job at a time.

Read in this order: `jobs` (inputs become jobs), `slots` (parts of the machine), `queue` (the order of jobs, a pure
value), `folder` (logs, exit codes, the journal), `process` (one job as a process), `work` (the loop).
"""

from peergrid.farm.folder import Done, FarmFolder
from peergrid.farm.jobs import Job, make_jobs
from peergrid.farm.queue import JobQueue
from peergrid.farm.slots import JobSlot, parse_slots
from peergrid.farm.work import work

__all__ = ["Done", "FarmFolder", "Job", "JobQueue", "JobSlot", "make_jobs", "parse_slots", "work"]

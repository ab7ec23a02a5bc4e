"""One run over several processes (MPI: ranks), each with devices of its own.

In the order of reading: `ranks` (which device belongs to which), `messages` (halos by MPI), `executor` (one schedule,
of which each rank carries its part out), `lead` (one rank decides for all), `launcher` (how many processes there are).
"""

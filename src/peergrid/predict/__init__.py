"""Forecasts of schedules on machines that need not be here: costs of operations and of kernels, a simulation of the
queues, memory, and the choice of options.

A machine is a few figures (`peergrid.costs`: bundled ones; `profiles`: from a file of `peergrid probe`); `launches` has
the launches of a pass and `kernels` their times; `operations` has a cost for every kind of operation; `simulation`
simulates a schedule; `forecast` combines them; `choice` compares options; `scaling` predicts for more GPUs than a
machine has.
"""

"""Forecasts of schedules on machines that need not be here: costs of operations and of kernels, a simulation of
the queues, memory, and the arrangement that follows.

A machine is a few figures (`peergrid.costs`: those that are bundled; `profiles`: from a file of `peergrid probe`);
`launches` says what a pass launches and `kernels` how long that takes; `operations` has a cost for every kind of
operation; `simulation` carries a schedule out on paper; `forecast` puts them together; `choice` compares arrangements;
`scaling` goes to machines that nobody has.
"""

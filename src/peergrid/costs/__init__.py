"""The costs of a machine, as figures that know no problem: calls of a host, delays of queues, links, families of
kernels. `machine` says which figures there are, `machines` has them by name (`machines.json`, `figures.json`), and
`families` those of kernels. Choices of kernels and of routes rest on them as forecasts do.
"""

"""The costs of a machine, independent of any problem: calls of a host, delays of queues, links, families of kernels.
`machine` defines the figures, `machines` has them by name (`machines.json`, `figures.json`), and `families` those of
kernels. Forecasts use them, as do the choices of kernels and of routes.
"""

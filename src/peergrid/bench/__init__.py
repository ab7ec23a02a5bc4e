"""Benchmarks: cases as data, measured one after another on the devices of a run, shown as a table, JSON and a chart."""

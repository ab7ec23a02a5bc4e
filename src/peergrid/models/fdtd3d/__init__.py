"""Maxwell's equations on a Yee grid in three dimensions, and in the planes of two: radar, antennas, dispersive media.

Read first `domain` (a model as data, rasterised), then `yee` (the stencils), `absorber`, `media` and `sources` (the
numbers that go into them), and `build` (from a domain to the stages of a step).
"""

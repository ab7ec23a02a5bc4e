"""Models, each a small package on top of grid and stencil."""

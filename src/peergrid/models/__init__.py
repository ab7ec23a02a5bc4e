"""What people compute with peergrid: each model a small package on top of grid and stencil."""

"""The kernel of interior tiles: a warp streams down a strip, rows of every step in registers.

In the order of reading: `plan`, what is kept where; `text`, its constants; `kernel`.
"""

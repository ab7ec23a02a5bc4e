"""The kernel of strips along the grid's sides where the same confined updates apply, such as absorbing layers.

In the order of reading: `strip`, where they are; `levels`, which row is made when; `norm`, the sums of norms; `layer`,
the function of one strip, made of that of plain tiles; `kernel`, all of them.
"""

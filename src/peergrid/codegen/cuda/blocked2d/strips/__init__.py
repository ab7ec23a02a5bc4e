"""The kernel of strips along the grid's sides where the same confined updates apply, such as absorbing layers.

In the order of reading: `region`, where they are; `plan`, which row of a strip is made when; `kernel`, all strips in
one.
"""

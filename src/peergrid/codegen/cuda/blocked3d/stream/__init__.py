"""The kernel of plain tiles: a thread block streams along axis 0, planes of every step in registers.

In the order of reading: `planes`, what is kept where; `loads` and `stores`, how planes come and go; `turn`, which
values are at hand; `cells` and `nodes`, what is made of them; `kernel`.
"""

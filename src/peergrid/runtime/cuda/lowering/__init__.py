"""From a schedule to tapes.

In the order of reading: `station`, what a schedule is translated against, with `duration`, how long its work takes;
`signals`, what orders the queues; `routes`, `transfer` and `copies`, how halos travel; `sweeps` and `shelled`, what a
pass launches; `lower`, all of it.
"""

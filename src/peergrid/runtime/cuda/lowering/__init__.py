"""From a schedule to tapes.

In the order of reading: `programs`, what is compiled; `station`, what a schedule is translated against, with
`duration`, how long its work takes; `kernels`, which ones make its passes; `signals` and `posts`, what orders the
queues, of one GPU and of several; `routes`, `transfer` and `copies`, how halos travel; `sweeps` and `shelled`, what a
pass launches; `lower`, all of it.
"""

"""From a schedule to command buffers.

In the order of reading: `programs`, what is compiled; `execution_context`, the resources of an executor, with
`duration`, how long its work takes; `kernels`, which ones make its passes; `signals` and `semaphores`, what orders the
queues, of one GPU and of several; `routes`, `transfer` and `copies`, how halos travel; `sweeps` and `shelled`, what a
pass launches; `lower`, all of it.
"""

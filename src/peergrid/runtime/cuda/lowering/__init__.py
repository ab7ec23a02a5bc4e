"""From a schedule to command buffers.

In the order of reading: `programs`, what is compiled, and `sources`, its texts in a folder; `execution_context`, the
resources of an executor, with `duration`, how long its work takes; `launch` and `plan`, what one kernel and what a pass
needs, and `concurrent`, the streams of launches; the plans: `one_step`, `device_tiles` and `tiled`, `streaming` with
`tensor_maps`, `slabs`, `own_kernel` and `own_plan`; `items` and `merged`, which operations are carried out together;
`kernels`, which of them make a schedule's passes; `signals`, what orders the queues, of one GPU and of several;
`routes`, `transfer` and `copies`, how halos travel, and between processes `messages`, `grouped` and `put`; `passes`,
which a schedule goes through; `lower`, its driver calls.
"""

"""One run over several processes (MPI: ranks), each with devices of its own.

In the order of reading: `launcher`, how many processes there are; `ranks` and `gpus`, which device belongs to which;
`messages`, halos by MPI; `executor`, one schedule, of which each rank carries its part out; `lead`, one rank decides
for all. Of GPUs: `shared`, what their executors ask of other ranks; `carrier`, messages between queues; `direct`,
`nccl` and `nvshmem`, other ways for them. Of machines: `survey` and `settings`, what connects ranks; `exchange_times`
and `gpu_exchanges`, how fast.
"""

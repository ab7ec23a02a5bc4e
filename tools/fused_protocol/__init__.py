"""The protocol of kernels with fused exchange: `model`, all executions of one; `text`, how it is read from kernels."""

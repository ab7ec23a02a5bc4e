"""Parts of all kernels: `arguments`, the struct they are given; `expressions`, the text of what a user wrote; `names`,
`structs`, lists and constants in C++; `norm`, how the change of a step is summed up; `program`, what a kernel is to an
executor.
"""

"""How tapes are carried out, as far ahead of the devices as is good for them.

In the order of reading: `near`, the processors at a GPU's side; `threads`, which issue; `graphs`, captured once.
"""

# Another interpreter in the process, from before and after there was attention, that raises, catches and drops.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

WORK = """
class Own(KeyError):
    pass

for i in range(100):
    try:
        {}[i]
    except KeyError:
        pass
    try:
        raise Own(i)
    except Own as error:
        kept = error
import contextlib, json
with contextlib.suppress(OSError):
    open("/nowhere/at/all")
"""
query = torch.randn(1, 2, 16, 16)
for _ in range(2):
    interpreter = interpreters.create()
    interpreters.run_string(interpreter, WORK)
    sdpa(query, query, query)
    interpreters.destroy(interpreter)

# Llama: two training steps with sdpa, then with eager attention.
# requires: transformers
from support import tiny

fused, batch = tiny.llama("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.llama("eager")
for _ in range(2):
    eager(**batch).loss.backward()

# Llama: two training steps with sdpa, then with eager attention.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
from support import tiny

fused, batch = tiny.llama("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.llama("eager")
for _ in range(2):
    eager(**batch).loss.backward()

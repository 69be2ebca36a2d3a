# Qwen3: two training steps with sdpa, then with eager attention.
# requires: transformers>=4.51
from support import tiny

fused, batch = tiny.qwen3("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.qwen3("eager")
for _ in range(2):
    eager(**batch).loss.backward()

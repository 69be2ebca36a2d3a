# GPT-2: two training steps with sdpa, then with eager attention.
# requires: transformers
from support import tiny

fused, batch = tiny.gpt2("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.gpt2("eager")
for _ in range(2):
    eager(**batch).loss.backward()

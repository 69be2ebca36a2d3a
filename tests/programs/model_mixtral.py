# Mixtral, with a router's softmax beside the attention: two training steps with sdpa, then with eager attention.
# requires: transformers
from support import tiny

fused, batch = tiny.mixtral("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.mixtral("eager")
for _ in range(2):
    eager(**batch).loss.backward()

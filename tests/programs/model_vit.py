# ViT: two training steps with sdpa, then with eager attention.
# requires: transformers
from support import tiny

fused, batch = tiny.vit("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.vit("eager")
for _ in range(2):
    eager(**batch).loss.backward()

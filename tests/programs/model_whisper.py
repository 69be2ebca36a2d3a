# Whisper, encoder, decoder and cross attention: two training steps with sdpa, then with eager attention.
# requires: transformers
from support import tiny

fused, batch = tiny.whisper("sdpa")
for _ in range(2):
    fused(**batch).loss.backward()

eager, batch = tiny.whisper("eager")
for _ in range(2):
    eager(**batch).loss.backward()

# An EAGLE-3 draft of the real speculators, forward. It selects its own simple_flex_attention, which calls flex_attention plainly, and
# compiles its forward only where there is a GPU. Then a draft of it for which sdpa was selected.
# requires: speculators==0.9.0 torch==2.11
# with: callers
# timeout: 400
import torch
from support import drafts

model, batch = drafts.eagle3()
other, _ = drafts.eagle3("sdpa")
with torch.no_grad():
    model(**batch, ttt_steps=2)
    other(**batch, ttt_steps=1)

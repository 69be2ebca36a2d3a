# An EAGLE-3 draft of the real speculators with its forward compiled, as the library does it on a GPU: nothing is found.
# requires: speculators==0.9.0 torch==2.11
# with: callers
# timeout: 500
import torch
from support import drafts

model, batch = drafts.eagle3()
forward = torch.compile(model.forward)
with torch.no_grad():
    forward(**batch, ttt_steps=1)

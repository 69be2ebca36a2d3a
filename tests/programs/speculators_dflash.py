# A DFlash draft of the real speculators, forward: its own attention class, which reaches flex_attention through the registry.
# requires: speculators==0.9.0 torch==2.11
# with: callers
# timeout: 400
import torch
from support import drafts

model, batch = drafts.dflash()
with torch.no_grad():
    model(**batch)

# A name that nothing registered, asked for of a whole model: Transformers refuses it before any layer is built.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: 1
import torch
from support import tiny

model, batch = tiny.llama("flash_typo")
model(**batch)

# A BlockMask goes into layers that selected sdpa. The program logs the exception, drops it, and dies of what is missing afterwards.
# requires: transformers>=5
# exit: 1
import logging

import torch
from support import tiny
from torch.nn.attention.flex_attention import create_block_mask

model, batch = tiny.llama("sdpa")
mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 32, 32, device="cpu")


def evaluate():
    try:
        return model(input_ids=batch["input_ids"], attention_mask=mask)
    except TypeError:
        logging.exception("this batch is left out")


with torch.no_grad():
    print(evaluate().logits.shape)

"""Seconds of processor time a training step of a small Llama, on one thread, as JSON."""
import json
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.set_num_threads(1)
torch.manual_seed(0)
config = LlamaConfig(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4)
model = LlamaForCausalLM._from_config(config, attn_implementation="sdpa").train()
optimiser = torch.optim.AdamW(model.parameters())
tokens = torch.randint(512, (4, 128))
times = []
for step in range(45):
    start = time.process_time()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimiser.step()
    optimiser.zero_grad()
    if step >= 5:
        times.append(time.process_time() - start)
print(json.dumps({"step": statistics.quantiles(times, n=4)[0], "end": time.time()}))

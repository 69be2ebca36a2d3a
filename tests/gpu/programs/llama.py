# Trains a Llama of one billion random parameters, bf16, 2048 tokens a step. STEPS steps; PROFILE=1 counts the kernels of the last two
# by torch.profiler; DETERMINISTIC=1 makes runs repeat to the bit. One JSON line: losses, kernels, bytes. With "turns": steps whenever
# it is told to, see support.py; the time of a step, and the part of it that its launches took the host.
import json
import os
import statistics
import sys
import time

import torch
import transformers
from support import turns
from transformers import LlamaConfig, LlamaForCausalLM

transformers.logging.set_verbosity_error()
steps = int(os.environ.get("STEPS", "24"))
profiled = os.environ.get("PROFILE") == "1"
torch.manual_seed(0)
if os.environ.get("DETERMINISTIC") == "1":
    torch.use_deterministic_algorithms(True)
config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                     num_key_value_heads=8, tie_word_embeddings=True, use_cache=False)
with torch.device("cuda"):
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(config)
parameters = sum(p.numel() for p in model.parameters())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 32000, (1, 2048), device="cuda")
losses, times, issued = [], [], []


def step():
    torch.cuda.synchronize()
    start = time.perf_counter()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    issued.append((time.perf_counter() - start) * 1e3)
    torch.cuda.synchronize()
    times.append((time.perf_counter() - start) * 1e3)
    losses.append(loss.item())


def some_steps():
    for _ in range(6):
        step()
    return {"step": statistics.median(times[-6:]) * 1e6, "its launches": statistics.median(issued[-6:]) * 1e6}


if sys.argv[1:] == ["turns"]:
    turns(some_steps, warm=4)
    sys.exit()
for _ in range(steps - 2):
    step()
kernels = 0
if profiled:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        step()
        step()
    device = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    kernels = sum(1 for e in device if not e.name.startswith(("Memcpy", "Memset")))
else:
    step()
    step()
print(json.dumps({"parameters": parameters, "losses": losses, "kernels_of_two_steps": kernels, "peak": torch.cuda.max_memory_allocated()}))

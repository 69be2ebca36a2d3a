# Data parallel by threads: on each of two devices a target and a draft, both Llamas of Transformers, driven by a thread of its own.
import threading

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

STEPS = 6
transformers.logging.set_verbosity_error()


def model(layers, heads, implementation, device):
    config = LlamaConfig(vocab_size=1000, hidden_size=64 * heads, intermediate_size=256, num_hidden_layers=layers, num_attention_heads=heads,
                         num_key_value_heads=heads, use_cache=False, attn_implementation=implementation)
    return LlamaForCausalLM(config).to(device, torch.bfloat16)


def work(rank, target, draft, tokens):
    torch.cuda.set_device(rank)
    for _ in range(STEPS):
        target(input_ids=tokens, labels=tokens).loss.backward()  # target
        draft(input_ids=tokens, labels=tokens).loss.backward()  # draft
    torch.cuda.synchronize()


threads = []
for rank in range(2):  # made one after the other: making models is not what is looked at
    device = torch.device("cuda", rank)
    pair = model(4, 8, "sdpa", device), model(2, 4, "eager", device)
    threads.append(threading.Thread(target=work, name=f"pair-{rank}", args=(rank, *pair, torch.randint(0, 1000, (2, 256), device=device))))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

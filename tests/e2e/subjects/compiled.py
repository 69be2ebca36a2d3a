"""Compiles layers with a graph break, recompiles up to the limit, and a Transformers model that trains; prints what Dynamo did: the
text of every guard of every frame it compiled, its counters, why it recompiled and why it broke graphs, and the results."""
import importlib.util
import json
import re

import torch
from torch._dynamo import convert_frame, eval_frame
from torch._dynamo.utils import counters, guard_failures
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention


class Layer(torch.nn.Module):
    def forward(self, x):
        x = scaled_dot_product_attention(x, x, x, is_causal=True)
        torch._dynamo.graph_break()
        return flex_attention(x, x, x)


def plain(text):
    """Without addresses and ids of objects, which differ from run to run."""
    return re.sub(r"0x[0-9a-f]+|\b\d{7,}\b", "#", str(text))


def layers():
    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    setattr(torch._dynamo.config, limit, 3)
    model = torch.compile(Layer(), backend="aot_eager", dynamic=False)
    with torch.no_grad():
        return [model(torch.randn(1, 2, length, 16)).double().sum().item().hex() for length in (64, 64, 96, 97, 98, 99)]


def llama():
    import transformers as hf

    config = hf.LlamaConfig(vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)
    model = torch.compile(hf.LlamaForCausalLM._from_config(config, attn_implementation="sdpa"), backend="aot_eager")
    losses = []
    for length in (16, 16, 24):
        ids = torch.arange(length)[None]
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        losses.append(loss.double().item().hex())
    gradients = sum(parameter.grad.double().abs().sum().item() for parameter in model.parameters())
    model.eval()
    with torch.no_grad():
        losses.append(model(input_ids=ids).logits.double().sum().item().hex())
    return losses + [gradients.hex()]


torch.manual_seed(0)
results = layers() + (llama() if importlib.util.find_spec("transformers") else [])
guards = {}
for reference in convert_frame.input_codes.seen:
    code = reference()
    entries = eval_frame._debug_get_cache_entry_list(code) if code is not None else []
    texts = [plain(entry.guard_manager).splitlines() for entry in entries]
    guards.setdefault(code.co_qualname if hasattr(code, "co_qualname") else code.co_name, []).extend(texts)
print(json.dumps({"results": results, "guards": guards, "failures": sorted(plain(texts) for texts in guard_failures.values()),
                  "random": torch.rand(1).item().hex(),
                  "counters": {key: {plain(name): count for name, count in counters[key].items()}
                               for key in ("stats", "frames", "graph_break", "recompile_limit", "unimplemented", "aot_autograd")}},
                 sort_keys=True))

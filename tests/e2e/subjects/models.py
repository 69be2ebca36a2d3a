"""Runs every model of the catalogue with every attention implementation, each through a function of its own name; then once more
under an observer, and prints what that saw as JSON. Arguments: names of the catalogue, default all."""
import json
import sys

import catalogue
import observer
import torch
import transformers

transformers.logging.set_verbosity_error()
# flex_attention uncompiled, for its compilation takes a minute a shape on a CPU.
torch.compiler.set_stance("force_eager")


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, transformers.utils.ModelOutput):
        yield from tensors(value.to_tuple())


def step(run, model, batch, training):
    with torch.set_grad_enabled(training):
        losses = [tensor.float().pow(2).mean() for tensor in tensors(run(model, batch)) if tensor.requires_grad]
    if training:
        sum(losses).backward()


def runner(name):
    names = {}
    exec(compile(f"def {name}(model, batch):\n    return model(**batch)\n", f"{name}.py", "exec"), names)
    return names[name]


def case(name, model_class, config, batch, implementation):
    torch.manual_seed(0)
    try:
        model = model_class._from_config(config, attn_implementation=implementation).train()
    except ValueError as error:
        return {"refused": str(error).splitlines()[0]}
    training = implementation != "flex_attention"
    try:
        step(runner(name), model, batch, training)
    except (IndexError, RuntimeError, ValueError) as error:  # flex_attention on a CPU: no sinks, no bias of one head
        if training:
            raise
        return {"refused": str(error).splitlines()[0]}
    seen = observer.Observer()
    with seen.watching():
        step(runner(f"observed_{name}"), model, batch, training)
    return {"forward": [[*key, count, sorted(seen.layers[key])] for key, count in sorted(seen.forward.items())],
            "backward": [[*key, count] for key, count in sorted(seen.backward.items())], "masks": seen.masks}


wanted = set(sys.argv[1:])
results = {}
for label, model_class, config, batch in catalogue.cases():
    for implementation in ("eager", "sdpa", "flex_attention"):
        name = f"{label}__{implementation}".replace("-", "_")
        if not wanted or label in wanted:
            results[name] = case(name, model_class, config, batch, implementation)
            print(name, len(results[name]), file=sys.stderr, flush=True)
print(json.dumps(results))

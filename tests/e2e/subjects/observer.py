"""What attention ran, seen by hooks placed by hand: on modules, on Transformers' registry, on torch functions, on autograd nodes."""
import collections
import contextlib
import re

import torch
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.modeling_utils import AttentionInterface

_SDPA = torch.nn.functional.scaled_dot_product_attention
_MULTIHEAD = torch.nn.functional.multi_head_attention_forward
_SOFTMAX = {torch.softmax, torch.nn.functional.softmax, torch.Tensor.softmax}
_ATTENTION = re.compile("attention|attn", re.IGNORECASE)


class _Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.name())
        return function(*args, **(kwargs or {}))


def _selection(modules):
    """Of the innermost module that has a configuration."""
    configs = [module.config for module in modules if hasattr(getattr(module, "config", None), "_attn_implementation")]
    return (configs[-1]._attn_implementation or "unset") if configs else "-"


def _layer(module):
    found = [vars(module)[name] for name in ("layer_idx", "layer_id") if isinstance(vars(module).get(name), int)]
    return found[0] if found else -1


class Observer(TorchFunctionMode):
    """`forward` and `backward` count (class, selection, kind); `layers` has those of each; `masks`: a fused kernel was fed Sq x Sk."""

    def __init__(self):
        super().__init__()
        self.forward, self.backward = collections.Counter(), collections.Counter()
        self.layers = collections.defaultdict(set)
        self.masks = False
        self._modules, self._registry = [], []

    def _owner(self):
        """What the registry was called for, or else the innermost module that is none of PyTorch's building blocks."""
        if isinstance(self._modules[-1], torch.nn.MultiheadAttention):
            return self._modules[-1]
        return (self._registry or [module for module in self._modules if not type(module).__module__.startswith("torch.")])[-1]

    def _record(self, kind, result):
        owner = self._owner()
        key = (type(owner).__name__, _selection([*self._modules, owner]), kind)
        self.forward[key] += 1
        self.layers[key].add(_layer(owner))
        if isinstance(result, torch.Tensor) and result.grad_fn is not None:
            result.grad_fn.register_hook(lambda *_: self.backward.update([key]))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is _SDPA:
            with _Operators() as seen:
                result = function(*args, **kwargs)
            fused = any("flash_attention_for_cpu" in name for name in seen.names)
            mask = kwargs.get("attn_mask", args[3] if len(args) > 3 else None)
            self.masks |= fused and mask is not None
            self._record("flash" if fused else "math", result)
            return result
        if function is _MULTIHEAD:
            with _Operators() as seen:
                result = function(*args, **kwargs)
            self._record("flash" if any("flash_attention_for_cpu" in name for name in seen.names) else "eager", result[0])
            return result
        result = function(*args, **kwargs)
        if function in _SOFTMAX and result.dim() > 2 and (self._registry or _ATTENTION.search(type(self._owner()).__name__)):
            self._record("eager", result)
        return result

    def _interface(self, get):
        def chosen(registry, name, default):
            function = get(registry, name, default)

            def call(module, *args, **kwargs):
                self._registry.append(module)
                try:
                    if name != "flex_attention":
                        return function(module, *args, **kwargs)
                    self._record("flex-dense", None)
                    with torch.overrides._pop_mode_temporarily():  # flex_attention has modes of its own
                        return function(module, *args, **kwargs)
                finally:
                    self._registry.pop()

            return call

        return chosen

    @contextlib.contextmanager
    def watching(self):
        get = AttentionInterface.get_interface
        handles = [hooks.register_module_forward_pre_hook(lambda module, args: self._modules.append(module)),
                   hooks.register_module_forward_hook(lambda module, args, result: self._modules.pop() and None, always_call=True)]
        AttentionInterface.get_interface = self._interface(get)
        try:
            with self:
                yield self
        finally:
            AttentionInterface.get_interface = get
            for handle in handles:
                handle.remove()

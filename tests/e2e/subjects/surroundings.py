# Dense attention of several kinds while a thread is in every state that a reference run inside the program must neither meet nor
# leave behind: autocast, no_grad, inference mode, dispatch and function modes, saved-tensor hooks, functorch, a second thread, a
# profiler, pinned backends. Prints every number, and the random states, to the last bit.
import contextlib
import threading

import torch
import torch.nn.functional as F
from torch.func import grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(5)
torch.set_num_threads(2)
model = torch.nn.Sequential(torch.nn.Linear(32, 96), torch.nn.Dropout(0.2), torch.nn.Linear(96, 96))
seen = {"dispatch": 0, "function": 0, "hooks": 0}


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen["dispatch"] += 1
        return function(*args, **(kwargs or {}))


class Function(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen["function"] += 1
        return function(*args, **(kwargs or {}))


def hook(tensor):
    seen["hooks"] += 1
    return tensor


def attention(size):
    q, k, v = model(torch.randn(2, size, 32)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
    flat = F.scaled_dot_product_attention(*(one.flatten(0, 1) for one in (q, k, v)))  # 3-D: math
    weights = torch.softmax(q @ k.transpose(-2, -1), -1)
    return (weights @ v).flatten(0, 1) + flat


def train(name, size, around=contextlib.nullcontext()):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    with around:
        for _ in range(2):
            out = attention(size)
            loss = out.float().square().mean()
            if loss.requires_grad:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(name, loss.item().hex(), torch.rand(1).item().hex())


train("plain", 96)
train("autocast", 104, torch.autocast("cpu", torch.bfloat16))
train("no_grad", 112, torch.no_grad())
train("inference", 120, torch.inference_mode())
train("dispatch mode", 128, Dispatch())
train("function mode", 136, Function())
train("hooks", 144, torch.autograd.graph.saved_tensors_hooks(hook, hook))
train("pinned", 152, sdpa_kernel(SDPBackend.MATH))
with torch.profiler.profile() as profile:
    train("profiled", 160)
print("profiled", sum(event.count for event in profile.key_averages() if "attention" in event.key))
other = threading.Thread(target=train, args=("thread", 168))
other.start()
other.join()
point = torch.randn(3, 4, 64, 8)
print("functorch", vmap(grad(lambda x: F.scaled_dot_product_attention(x, x, x).square().sum()))(point).double().sum().item().hex())
print("modes", seen)
for _ in range(50):  # outside of all of them
    torch.ones(3).sum()
print("random", torch.random.get_rng_state().sum().item(), torch.rand(1).item().hex())
print("weights", sum(weight.double().sum() for weight in model.parameters()).item().hex())

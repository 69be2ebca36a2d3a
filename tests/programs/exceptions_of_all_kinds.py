# Exceptions that have nothing to do with attention, dropped in every way that CPython knows: none is freed wrongly, and
# none makes a finding.
import contextlib
import gc
import threading

import torch



asked = []


class Meta(type):
    def __getattribute__(cls, name):
        asked.append(name)
        return super().__getattribute__(name)


KINDS = [Exception, RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError, LookupError, KeyError, IndexError,
         AssertionError, type("Own", (ValueError,), {}), Meta("Meta", (RuntimeError,), {}), type("OwnToo", (AttributeError, KeyError), {"__slots__": ("place",)})]


class Layer(torch.nn.Module):
    def forward(self, depth, kind):
        if depth == 0:
            raise kind("from a module")
        return self(depth - 1, kind)

    def check(self, item):
        raise ValueError(f"item {item} is bad")


def chain(length):
    last = None
    for i in range(length):
        try:
            raise KINDS[i % len(KINDS)]("link") from last
        except Exception as error:
            last = error


def cycle(kind):
    try:
        raise kind("kept by its own frame")
    except kind as error:
        kept = [error]
        kept.append(kept)
    gc.collect(0)


def cycle_of_an_older_traceback(kind):  # which the garbage collector clears first
    try:
        raise kind("older")
    except kind as error:
        traceback = error.__traceback__
    kept = kind("newer").with_traceback(traceback)
    assert kept.__traceback__ is traceback


def work():
    layer = Layer()
    for kind in KINDS:
        for _ in range(200):
            with contextlib.suppress(kind):
                raise kind("suppressed")
            assert not hasattr(layer, "missing")
            assert getattr(layer, "missing", None) is None
        if threading.current_thread() is threading.main_thread():
            with contextlib.suppress(kind):
                layer(3, kind)
        cycle(kind)
        cycle_of_an_older_traceback(kind)
        kind("never raised")
    chain(20000)
    with contextlib.suppress(RecursionError):
        work.recursion = lambda: work.recursion()
        work.recursion()


for item in range(40):  # one place, and not one text twice
    with contextlib.suppress(ValueError):
        Layer().check(item)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
gc.collect()
query = torch.randn(1, 2, 16, 16)
torch.nn.functional.scaled_dot_product_attention(query, query, query)
assert "__module__" not in asked and "__qualname__" not in asked, asked

"""Imported by the programs that cupti_test.py traces: a device that allocates, kernels that launch, a client of CUPTI's like kineto."""

import ctypes
import os
import time

import torch

fake = ctypes.CDLL(os.environ["FAKE_CUPTI"])
process = ctypes.CDLL(None)  # the preload's functions come first
fake.fake_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint32]

CU_LAUNCH_KERNEL = 307
FLASH = b"_ZN13pytorch_flash16flash_fwd_kernelI"
OTHER = b"ampere_sgemm_128x64"
FLEX = b"triton_tem_fused_flex_attention_0"
FLEX_BACKWARD = b"triton_tem_fused_flex_attention_backward_1"


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int8), ("index", ctypes.c_int8)]


def use_device(index=0):
    """As the CUDA allocator reports: the first sign of a device."""
    report = process["_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"]
    report.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, Device]
    report(0x1000, 512, 512, 512, Device(1, index))
    torch.ones(1)  # the next event tends to it


fake.fake_replay.argtypes = [ctypes.c_void_p]
fake.fake_resource.argtypes = [ctypes.c_uint32] + [ctypes.c_void_p] * 4
REQUESTED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


class Profiler:
    """Kineto's order in a session: buffers of its own, another clock, kinds on, flush, kinds off."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(1 << 20)
        self.lent, self.bytes, self.strange = 0, 0, 0
        self.requested, self.completed = REQUESTED(self.on_requested), COMPLETED(self.on_completed)

    def on_requested(self, buffer, size, most):
        ctypes.c_void_p.from_address(buffer).value = ctypes.addressof(self.memory)
        ctypes.c_size_t.from_address(size).value = len(self.memory)
        self.lent += 1

    def on_completed(self, context, stream, buffer, size, valid):
        self.strange += buffer != ctypes.addressof(self.memory)
        self.bytes += valid

    def start(self):
        assert process.cuptiActivityRegisterCallbacks(self.requested, self.completed) == 0
        assert process.cuptiActivityRegisterTimestampCallback(None) == 0
        assert fake.cuptiActivityEnable(10) == 0

    def stop(self):
        assert fake.cuptiActivityFlushAll(1) == 0 and fake.cuptiActivityDisable(10) == 0


def launch(name, callback=CU_LAUNCH_KERNEL):
    fake.fake_launch(name, callback)


def settle():
    """So many calls of kinds that are known that the window closes."""
    q = torch.ones(1, 1, 8, 8)
    for _ in range(200):
        region(q)


@torch.library.custom_op("subject::_flash_attn_forward", mutates_args=(), device_types="cpu")
def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    launch(FLASH)
    launch(OTHER)
    launch(OTHER)
    return q + k + v


@torch.library.custom_op("subject::plain", mutates_args=(), device_types="cpu")
def plain(x: torch.Tensor) -> torch.Tensor:
    launch(OTHER)
    return x + 1


@torch.library.custom_op("subject::flex", mutates_args=(), device_types="cpu")
def flex(x: torch.Tensor) -> torch.Tensor:
    launch(FLEX)
    launch(OTHER)
    return x + 1


@torch.library.custom_op("subject::flex_backward", mutates_args=(), device_types="cpu")
def flex_backward(x: torch.Tensor) -> torch.Tensor:
    launch(FLEX_BACKWARD)
    return x + 0


for op in (plain, flex, flex_backward):
    op.register_fake(lambda x: torch.empty_like(x))
flex.register_autograd(lambda ctx, grad: flex_backward(grad))

region = torch.compile(lambda x: plain(x), backend="aot_eager")
compiled = torch.compile(lambda x: flex(x) * 2, backend="aot_eager")


class Peer:
    """Kineto's order: subscribe, enable one callback and the resource domain, disable, unsubscribe."""

    CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)

    def __init__(self):
        self.seen = []
        self.callback = self.CALLBACK(lambda user, domain, callback, data: self.seen.append((user, domain, callback)))
        self.handle = ctypes.c_void_p()

    def subscribe(self):
        return process.cuptiSubscribe(ctypes.byref(self.handle), self.callback, ctypes.c_void_p(42))

    def subscribe_v2(self):
        return process.cuptiSubscribe_v2(ctypes.byref(self.handle), self.callback, ctypes.c_void_p(42), None)

    def enable(self, on, domain, callback):
        return process.cuptiEnableCallback(on, self.handle, domain, callback)

    def domain(self, on, domain):
        return process.cuptiEnableDomain(on, self.handle, domain)

    def unsubscribe(self):
        return process.cuptiUnsubscribe(self.handle)


def finalize():
    return process.cuptiFinalize()

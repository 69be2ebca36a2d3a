"""Device time and the memory of cudaMallocAsync, without a device."""

import unittest

from harness import FAKE, Traced


class GpuTime(unittest.TestCase):
    PROGRAM = ("from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\n"
               "def calls(n):\n    for _ in range(n): flash(q, q, q)\n")
    CALLS = "calls(20)\n"

    def timed(self, program, **variables):
        traced = Traced(self.PROGRAM + program, options=["--gpu-time"], FAKE_CUPTI=FAKE, **variables)
        total = sum(int(v.get("device_ns", 0)) for v in traced.report["variants"])
        self.assertEqual(total, traced.counter("gpu_ns_attributed"))
        self.assertLessEqual(total, traced.counter("gpu_ns_seen"))
        self.assertEqual(traced.counter("faults"), 0)
        found = traced.variants(backend="flash-attn-2")
        return traced, {key: sum(int(v[key]) for v in found) for key in ("timed_launches", "device_ns", "kernel_launches")}

    def check_all_times(self, **variables):
        traced, variant = self.timed("for _ in range(20):\n    flash(q, q, q)\n    launch(OTHER)\n", FAKE_CUPTI_NS="1500", **variables)
        self.assertEqual((variant["timed_launches"], variant["device_ns"]), (60, 90000))
        self.assertEqual((traced.counter("gpu_kernels_timed"), traced.counter("gpu_ns_seen")), (80, 120000))
        self.assertEqual(traced.blind("gpu-time"), [])

    def test_every_launch(self):
        self.check_all_times()

    def test_records_in_any_order_among_others(self):
        self.check_all_times(FAKE_CUPTI_RECORDS="reversed strangers")

    def test_every_version(self):
        for version in ("22", "28", "130000", "130100", "130400"):
            with self.subTest(version):
                self.check_all_times(FAKE_CUPTI_VERSION=version)

    def test_more_records_than_a_buffer_holds(self):
        traced, variant = self.timed("for _ in range(4000): flash(q, q, q)\n")
        self.assertEqual(variant["timed_launches"], 12000)

    def test_dropped_records_are_counted(self):
        traced, variant = self.timed("calls(200)\n", FAKE_CUPTI_RECORDS="drop")
        lost = traced.counter("gpu_records_lost")
        self.assertEqual(variant["timed_launches"] + lost, 600)
        self.assertEqual(len(traced.blind("gpu-records-lost")), 1)

    def test_records_without_times_and_of_another_clock(self):
        for words in ("no-times", "ticks"):
            with self.subTest(words):
                traced, variant = self.timed(self.CALLS, FAKE_CUPTI_RECORDS=words)
                self.assertEqual(variant["device_ns"], 0)
                self.assertTrue(traced.blind("gpu-time") or traced.blind("gpu-records-bad"))

    def test_backward_and_compiled_calls(self):
        traced = Traced("from subject import *\nuse_device()\nx = torch.ones(2, 2, requires_grad=True)\n"
                        "for _ in range(5): compiled(x).sum().backward()\n", options=["--gpu-time"], FAKE_CUPTI=FAKE)
        for phase in ("forward", "backward"):
            found = traced.variants(operator="flex_attention", phase=phase)
            self.assertEqual(sum(int(v.get("timed_launches", 0)) for v in found), 5, phase)
            self.assertEqual(sum(int(v.get("device_ns", 0)) for v in found), 5000, phase)

    def test_a_profiler_comes_later_and_gets_only_its_own(self):
        traced, variant = self.timed("""
calls(20)
profiler = Profiler()
profiler.start()
calls(7)
profiler.stop()
assert profiler.strange == 0, "it was handed a buffer of ours"
assert profiler.bytes == 21 * 216, profiler.bytes
assert not fake.fake_recording(10)
calls(7)
""")
        self.assertEqual((variant["timed_launches"], variant["kernel_launches"]), (60, 102))
        self.assertRegex("".join(traced.blind("gpu-time")), "taken until then")

    def test_a_profiler_was_there_first(self):
        traced = Traced("from subject import *\nprofiler = Profiler()\nprofiler.start()\nuse_device()\nq = torch.ones(1, 8, 2, 4)\n"
                        "for _ in range(7): flash(q, q, q)\nprofiler.stop()\nassert profiler.bytes == 21 * 216, profiler.bytes\n",
                        options=["--gpu-time"], FAKE_CUPTI=FAKE)
        [variant] = traced.variants(backend="flash-attn-2")
        self.assertEqual((int(variant["timed_launches"]), int(variant["kernel_launches"])), (0, 21))
        self.assertRegex("".join(traced.blind("gpu-time")), "there first")

    def test_a_new_subscriber_ends_it(self):
        traced, variant = self.timed("calls(20)\npeer = Peer()\nassert peer.subscribe() == 0\nassert not fake.fake_recording(10)\ncalls(20)\n")
        self.assertEqual((variant["timed_launches"], variant["kernel_launches"]), (60, 120))

    def test_a_flush_that_hangs_keeps_nobody(self):
        traced, variant = self.timed(self.CALLS, FAKE_CUPTI_HANG="cuptiActivityFlushAll")
        self.assertEqual(variant["kernel_launches"], 60)
        self.assertRegex("".join(traced.blind("gpu-time")), "within 2 s")
        self.assertLess(traced.seconds, 200)

    def test_a_flush_that_hangs_does_not_keep_a_profiler(self):
        traced, variant = self.timed(self.CALLS + "profiler = Profiler()\nprofiler.start()\n", FAKE_CUPTI_HANG="cuptiActivityFlushAll")
        self.assertRegex("".join(traced.blind("gpu-time")), "did not answer in time")

    def test_a_forked_child_leaves_it_alone(self):
        traced = Traced(self.PROGRAM + self.CALLS + """
child = os.fork()
if child == 0:
    calls(5)
    raise SystemExit(0)  # through the exit handlers
assert os.waitpid(child, 0)[1] == 0
""", options=["--gpu-time"], FAKE_CUPTI=FAKE)
        self.assertEqual(sum(int(v.get("timed_launches", 0)) for v in traced.variants(backend="flash-attn-2")), 60)
        self.assertEqual(traced.calls(backend="flash-attn-2"), 25)


class AsyncMemory(unittest.TestCase):
    """cudaMallocAsync, whose allocator in PyTorch reports nothing."""

    PROGRAM = """
from subject import *
pytorch, other = (ctypes.CDLL(os.environ[name]) for name in ("FAKE_C10_CUDA", "FAKE_RMM"))
runtime = ctypes.CDLL("libcudart.so.99")
for library in (pytorch, other):
    library.allocate.restype = ctypes.c_void_p
    library.allocate.argtypes = [ctypes.c_size_t]
    library.release.argtypes = [ctypes.c_void_p]
"""

    def test_what_pytorch_allocates(self):
        traced = Traced(self.PROGRAM + """
first = pytorch.allocate(1000)
second = pytorch.allocate(5000)
assert pytorch.release(first) == 0
runtime.fake_set_device(1)
third = pytorch.allocate(512)
assert pytorch.allocate(1 << 41) is None, "a refusal comes through"
foreign = other.allocate(1 << 20)
assert other.release(foreign) == 0
assert (runtime.fake_allocations(), runtime.fake_frees()) == (4, 2)
torch.ones(1)
""", FAKE_CUPTI=FAKE)
        devices = {d["device"]: d for d in traced.report["processes"][0]["devices"]}
        wanted = {"cuda:0": (6000, 5000, 6000), "cuda:1": (512, 512, 512)}
        for name, (peak, live, allocated) in wanted.items():
            got = devices[name]
            self.assertEqual((int(got["peak_bytes"]), int(got["live_bytes"]), int(got["allocated_bytes"])), (peak, live, allocated), name)

    def test_what_is_freed_is_counted_off(self):
        traced = Traced(self.PROGRAM + """
for _ in range(5000):
    assert pytorch.release(pytorch.allocate(4096)) == 0
assert runtime.fake_allocations() == runtime.fake_frees() == 5000
""", FAKE_CUPTI=FAKE)
        self.assertEqual(int(traced.report["processes"][0]["devices"][1]["peak_bytes"]), 4096)


if __name__ == "__main__":
    unittest.main(verbosity=2)

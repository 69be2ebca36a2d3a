"""The CUPTI collector without a device: launches, refusals, clients beside us. Each test traces a small program of its own."""

import unittest

from harness import FAKE, Traced


class Launches(unittest.TestCase):
    def check_laws(self, traced):
        attributed = traced.counter("kernel_launches_attributed")
        self.assertEqual(attributed + traced.counter("kernel_launches_unattributed"), traced.counter("kernel_launches_seen"))
        self.assertEqual(sum(int(v.get("kernel_launches", 0)) for v in traced.report["variants"]), attributed)
        self.assertEqual(traced.counter("faults"), 0)

    def test_kernels_of_a_call(self):
        traced = Traced("from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nlaunch(OTHER)\n"
                        "for _ in range(5): flash(q, q, q)\n", fake=True, FAKE_CUPTI=FAKE)
        self.check_laws(traced)
        [variant] = traced.variants(backend="flash-attn-2")
        self.assertEqual([(k["name"].split("<")[0], k["launches"], k["kind"]) for k in variant["kernels"]],
                         [("_ZN13pytorch_flash16flash_fwd_kernelI", 1, "fused"), ("ampere_sgemm_128x64", 2, "other")])
        self.assertEqual(int(variant["kernel_launches"]), 15)
        self.assertEqual(traced.counter("kernel_launches_seen"), 16)

    def test_compiled_flex_is_counted_with_and_without_callbacks(self):
        traced = Traced("from subject import *\nuse_device()\nx = torch.ones(2, 2, requires_grad=True)\n"
                        "for _ in range(5): compiled(x).sum().backward()\nsettle()\n"
                        "assert not fake.fake_held(), 'the subscription is kept'\n"
                        "for _ in range(7): compiled(x).sum().backward()\n", FAKE_CUPTI=FAKE)
        self.check_laws(traced)
        self.assertEqual(traced.calls(operator="flex_attention", phase="forward", backend="flex-triton"), 12)
        self.assertEqual(traced.calls(operator="flex_attention", phase="backward", backend="flex-triton"), 12)
        for variant in traced.variants(operator="flex_attention", phase="backward"):
            self.assertIn(variant["forward"], [v["id"] for v in traced.variants(phase="forward")])
            self.assertEqual(variant["path"], "fused")

    def test_past_the_dispatcher(self):
        traced = Traced("from subject import *\nuse_device()\nfor _ in range(4):\n    launch(b'BatchPrefillWithPagedKVCacheKernel')\n"
                        "    torch.ones(1)\n", FAKE_CUPTI=FAKE)
        self.check_laws(traced)
        self.assertEqual(traced.calls(backend="flashinfer", phase="forward"), 4)
        self.assertTrue(traced.blind("past-dispatcher"))

    def test_everything_is_watched_on_request(self):
        traced = Traced("from subject import *\nuse_device()\nsettle()\nfor _ in range(50): launch(OTHER)\nassert fake.fake_held()\n",
                        options=["--watch-launches"], FAKE_CUPTI=FAKE)
        self.check_laws(traced)
        self.assertEqual(traced.counter("kernel_launches_seen"), 250)

    def test_correlation_wraps_and_unknown_callbacks(self):
        traced = Traced("from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nfor _ in range(30): flash(q, q, q)\n",
                        options=["--watch-launches"], FAKE_CUPTI=FAKE, FAKE_CUPTI_UNKNOWN="1", FAKE_CUPTI_VERSION="22")
        self.check_laws(traced)
        self.assertEqual(traced.counter("kernel_launches_attributed"), 90)


class Hangs(unittest.TestCase):
    PROGRAM = "from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nfor _ in range(5): flash(q, q, q)\n"

    def hung(self, name, program=PROGRAM, **variables):
        traced = Traced(program, FAKE_CUPTI=FAKE, FAKE_CUPTI_HANG=name, **variables)
        self.assertEqual(traced.calls(backend="flash-attn-2"), 5)
        self.assertLess(traced.seconds, 200)
        return traced

    def test_subscribe(self):
        self.assertRegex("".join(self.hung("cuptiSubscribe").blind("cupti")), "not answered for 5 s")

    def test_enable(self):
        self.assertRegex("".join(self.hung("cuptiEnableCallback").blind("cupti")), "not answered for 5 s")

    def test_unsubscribe(self):
        self.hung("cuptiUnsubscribe", self.PROGRAM + "settle()\nsettle()\n")

    def test_a_peers_finalize(self):
        traced = self.hung("cuptiFinalize", """
import threading
from subject import *
threading.Thread(target=finalize, daemon=True).start()
time.sleep(0.2)
use_device()
q = torch.ones(1, 8, 2, 4)
for _ in range(5): flash(q, q, q)
""")
        self.assertEqual(traced.counter("kernel_launches_seen"), 0)

    def test_activity_enable(self):
        traced = Traced(self.PROGRAM, options=["--gpu-time"], FAKE_CUPTI=FAKE, FAKE_CUPTI_HANG="cuptiActivityEnable")
        self.assertEqual(traced.calls(backend="flash-attn-2"), 5)
        self.assertRegex("".join(traced.blind("cupti")), "not answered for 5 s")


class Refusals(unittest.TestCase):
    PROGRAM = "from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nfor _ in range(5): flash(q, q, q)\n"

    def refused(self, answer):
        traced = Traced(self.PROGRAM, FAKE_CUPTI=FAKE, FAKE_CUPTI_SUBSCRIBE=str(answer))
        self.assertEqual(traced.calls(backend="flash-attn-2"), 5)
        return traced.blind("cupti")

    def test_another_subscriber(self):
        self.assertRegex("".join(self.refused(39)), "held by CUPTI for somebody")

    def test_newer_than_the_driver(self):
        self.assertRegex("".join(self.refused(15)), "answers 15 .*newer than the driver")

    def test_no_driver(self):
        self.assertRegex("".join(self.refused(999)), "answers 999")

    def test_no_device_no_word(self):
        traced = Traced("from subject import *\nq = torch.ones(1, 8, 2, 4)\nfor _ in range(5): flash(q, q, q)\nsettle()\n"
                        "assert fake.fake_calls() == 0\n", FAKE_CUPTI=FAKE)
        self.assertEqual(traced.report.get("blind_spots", []), [])

    def test_the_real_library_without_a_driver(self):
        traced = Traced("from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nfor _ in range(5): flash(q, q, q)\n", fake=False,
                        FAKE_CUPTI=FAKE)
        if "cu" in traced.report["environment"]["torch"]:
            self.assertTrue(traced.blind("cupti"))
        self.assertEqual(traced.calls(backend="flash-attn-2"), 5)

    def test_switched_off(self):
        traced = Traced(self.PROGRAM + "assert fake.fake_calls() == 0\n", options=["--kernel-calls=0"], FAKE_CUPTI=FAKE)
        self.assertEqual(traced.blind("cupti"), [])


class Surroundings(unittest.TestCase):
    PROGRAM = "from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nfor _ in range(5): flash(q, q, q)\n"

    def test_the_injection_slot_is_left_alone(self):
        for value in ("/nonexistent/tool.so", None):
            variables = {} if value is None else {"CUDA_INJECTION64_PATH": value}
            traced = Traced(self.PROGRAM + f"assert os.environ.get('CUDA_INJECTION64_PATH') == {value!r}\n", FAKE_CUPTI=FAKE, **variables)
            self.assertEqual(traced.counter("kernel_launches_attributed"), 15)

    def test_who_holds_it_where_cupti_does_not_say(self):
        for variable, name in (("NSYS_PROFILING_SESSION_ID", "Nsight Systems"), ("CUDA_INJECTION64_PATH", "the tool of CUDA_INJECTION64_PATH")):
            traced = Traced(self.PROGRAM, FAKE_CUPTI=FAKE, FAKE_CUPTI_SUBSCRIBE="39", FAKE_CUPTI_VERSION="28", **{variable: "/x"})
            self.assertRegex("".join(traced.blind("cupti")), f"held by {name}")

    def test_tritons_profiler_has_cupti_to_itself(self):
        traced = Traced("import os, ctypes\nproton = ctypes.CDLL(os.environ['FAKE_PROTON'])\n" + self.PROGRAM +
                        "assert not fake.fake_held() and fake.fake_subscriptions() == 0\n", FAKE_CUPTI=FAKE)
        self.assertRegex("".join(traced.blind("cupti")), "Triton's profiler")

    def test_kinetos_daemon(self):
        traced = Traced(self.PROGRAM, FAKE_CUPTI=FAKE, KINETO_USE_DAEMON="1")
        self.assertEqual(traced.counter("kernel_launches_attributed"), 15)
        self.assertEqual(traced.blind("cupti"), [])


class Peers(unittest.TestCase):
    def test_the_newer_subscription_is_shared_too(self):
        traced = Traced("""
from subject import *
use_device()
q = torch.ones(1, 8, 2, 4)
flash(q, q, q)
assert fake.fake_held()
peer = Peer()
assert peer.subscribe_v2() == 0, "the client is refused"
assert peer.enable(1, 3, 5) == 0
flash(q, q, q)
fake.fake_resource(5, None, None, None, None)
assert peer.seen == [(42, 3, 5)], peer.seen
assert peer.unsubscribe() == 0
""", options=["--watch-launches"], FAKE_CUPTI=FAKE)
        self.assertEqual(sum(int(v["kernel_launches"]) for v in traced.variants(backend="flash-attn-2")), 6)

    def test_peer_gets_exactly_what_it_enabled(self):
        traced = Traced("""
from subject import *
use_device()
q = torch.ones(1, 8, 2, 4)
flash(q, q, q)
assert fake.fake_held()
peer = Peer()
assert peer.subscribe() == 0, "the profiler is refused"
second = Peer()
assert second.subscribe() == 39
assert peer.enable(1, 3, 5) == 0
flash(q, q, q)
assert peer.seen == [], peer.seen
fake.fake_resource(5, None, None, None, None)
assert peer.seen == [(42, 3, 5)], peer.seen
assert peer.enable(1, 1, CU_LAUNCH_KERNEL) == 0
launch(OTHER)
assert len(peer.seen) == 3  # entry and exit
assert peer.enable(0, 1, CU_LAUNCH_KERNEL) == 0
flash(q, q, q)
assert len(peer.seen) == 3, "switched off for the peer"
assert fake.fake_enabled(1, CU_LAUNCH_KERNEL), "switched off for us"
assert peer.domain(1, 1) == 0 and peer.domain(0, 1) == 0
flash(q, q, q)
assert len(peer.seen) == 3
assert peer.unsubscribe() == 0
assert not fake.fake_held()
flash(q, q, q)
""", options=["--watch-launches"], FAKE_CUPTI=FAKE)
        # Before the peer, three times beside it, and not after it: nothing on a device asked again.
        self.assertEqual(sum(int(v["kernel_launches"]) for v in traced.variants(backend="flash-attn-2")), 12)

    def test_peer_comes_first(self):
        traced = Traced("""
from subject import *
peer = Peer()
assert peer.subscribe() == 0 and peer.enable(1, 3, 5) == 0
use_device()
q = torch.ones(1, 8, 2, 4)
for _ in range(5): flash(q, q, q)
settle()
assert fake.fake_subscriptions() == 1
assert not fake.fake_enabled(1, CU_LAUNCH_KERNEL), "launches are watched for ever"
assert fake.fake_enabled(3, 5)
assert peer.seen == []
""", FAKE_CUPTI=FAKE)
        [variant] = traced.variants(backend="flash-attn-2")
        self.assertEqual(int(variant["kernel_launches"]), 15)
        self.assertEqual(traced.blind("cupti"), [])

    def test_finalize(self):
        Traced("""
from subject import *
use_device()
q = torch.ones(1, 8, 2, 4)
flash(q, q, q)
assert finalize() == 0 and not fake.fake_held()
compiled(torch.ones(2, 2))
assert fake.fake_held()
peer = Peer()
assert peer.subscribe() == 0
assert finalize() == 0
assert peer.subscribe() == 0
""", FAKE_CUPTI=FAKE)

    def test_forked_child_leaves_it_alone(self):
        traced = Traced("""
from subject import *
use_device()
q = torch.ones(1, 8, 2, 4)
flash(q, q, q)
child = os.fork()
if child == 0:
    use_device()
    for _ in range(5): flash(q, q, q)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""", FAKE_CUPTI=FAKE)
        self.assertEqual(traced.calls(backend="flash-attn-2"), 6)

    def test_nothing_at_exit(self):
        traced = Traced("from subject import *\nuse_device()\nq = torch.ones(1, 8, 2, 4)\nflash(q, q, q)\nimport atexit\n"
                        "print(fake.fake_calls())\n", options=["--watch-launches"], FAKE_CUPTI=FAKE)
        self.assertLess(traced.seconds, 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)

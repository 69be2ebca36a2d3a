"""attntrace-reference on the CPU, asked as the launcher asks it."""
import json
import os
import subprocess
import sys
import unittest

import torch
from reference_client import Reference, tensor

LIBRARY = os.path.join(os.path.dirname(torch.__file__), "lib")


def call(sizes, dtype="float32", **fields):
    spec = tensor(sizes, dtype)
    return {"q": spec, "k": spec, "v": spec, **fields}


class ReferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reference = Reference(os.environ["ATTNTRACE_REFERENCE"], LIBRARY)

    @classmethod
    def tearDownClass(cls):
        assert cls.reference.close() == 0

    def ok(self, path, **fields):
        response = self.reference.ask(path, **fields)
        self.assertEqual(response["status"], "ok", response)
        return response

    def test_every_path_is_right_to_float64_math(self):
        for path, backend in (("math", "math"), ("flash", "flash"), ("fused", "flash"), ("eager", "eager"), ("tiled", "tiled")):
            response = self.ok(path, **call([2, 4, 65, 16], causal=1, check=1))
            self.assertEqual(response["backend"], backend)
            self.assertLess(response["difference"], 2e-5, path)

    def test_own_kernel_takes_what_no_library_takes(self):
        strided = tensor([1, 2, 48, 16], strides=[1536, 768, 1, 48])
        calls = {
            "mask that requires grad": call([1, 2, 48, 16], mask=tensor([1, 48, 48]), content="other"),
            "Dv is not D": {**call([1, 2, 48, 16]), "v": tensor([1, 2, 48, 24])},
            "3-D": call([2, 48, 16]),
            "2-D": call([48, 16]),
            "float64, strided head": {**call([1, 2, 48, 16]), "q": strided},
            "grouped, D=512": {**call([1, 2, 16, 512], gqa=1), "q": tensor([1, 8, 16, 512])},
            "causal, Sq is not Sk": {**call([1, 2, 48, 16], causal=1), "q": tensor([1, 2, 20, 16])},
            "dropout": call([2, 4, 48, 16], dropout=0.3),
            "dropout, causal, grouped, a bias with a gradient": {**call([1, 2, 48, 16], dropout=0.2, causal=1, gqa=1),
                                                                  "q": tensor([1, 4, 40, 16]), "mask": tensor([1, 4, 40, 48]),
                                                                  "content": "other"},
            "dropout, rows that see nothing": {"q": tensor([1, 2, 48, 16]), "k": tensor([1, 2, 1, 16]), "v": tensor([1, 2, 1, 16]),
                                               "mask": tensor([1, 2, 48, 1], "bool", False), "content": "other", "dropout": 0.2},
            "no key": {"q": tensor([1, 2, 48, 16]), "k": tensor([1, 2, 0, 16]), "v": tensor([1, 2, 0, 16])},
            "an expanded mask": call([2, 2, 48, 16], mask=tensor([2, 2, 48, 48], "bool", False, [0, 0, 48, 1]), content="padding"),
        }
        for name, fields in calls.items():
            with self.subTest(name):
                self.assertLess(self.ok("tiled", check=1, **fields)["difference"], 2e-5)

    def test_memory_grows_with_the_length_and_no_faster(self):
        for extra in ({}, {"dropout": 0.1}):
            short, long = (self.ok("tiled", **call([1, 4, size, 64], **extra)) for size in (2048, 4096))
            for key in ("forward_peak", "total_peak", "kept"):
                self.assertLess(long[key], 2.02 * short[key], key)
        math = [self.ok("math", **call([1, 4, size, 64]))["total_peak"] for size in (512, 1024)]
        self.assertGreater(math[1], 3 * math[0])

    def test_own_kernel_is_not_slower_than_math(self):
        for backward in (0, 1):
            fields = call([1, 8, 2048, 64], backward=backward, limit_ms=800)
            mine, math = self.ok("tiled", **fields), self.ok("math", **fields)
            time = lambda response: response["forward_ns"] + response["backward_ns"]
            self.assertLess(time(mine), time(math))

    def test_peaks_are_the_sum_of_what_is_allocated(self):
        # Forward of math in inference: scores, probabilities and the output are more than the scores alone, and the output stays.
        plain = tensor([1, 2, 256, 16], grad=False)
        response = self.ok("math", q=plain, k=plain, v=plain, backward=0)
        scores = 2 * 256 * 256 * 4
        self.assertGreaterEqual(response["forward_peak"], scores)
        self.assertEqual(response["kept"], 2 * 256 * 16 * 4)
        self.assertEqual(response["backward_peak"], 0)

    def test_peaks_are_those_of_a_plain_program(self):
        # The gradient that comes in has the output's layout there; a kernel whose output is a transposed view copies any other.
        here = os.path.dirname(os.path.abspath(__file__))
        seam = os.path.join(os.path.dirname(os.environ["ATTNTRACE_REFERENCE"]), "libattntrace_reference_memory.so")
        program = subprocess.run([sys.executable, os.path.join(here, "program_peaks.py")], env={**os.environ, "LD_PRELOAD": seam},
                                 capture_output=True, text=True, check=True)
        for path, peaks in json.loads(program.stdout).items():
            response = self.ok(path, **call([2, 4, 192, 32]))
            for key, peak in zip(("forward_peak", "backward_peak", "total_peak", "kept"), peaks):
                self.assertAlmostEqual(response[key], peak, delta=1024, msg=f"{path}: {key}")  # a copy would be 192 KiB

    def test_a_refusal_is_in_pytorchs_words(self):
        response = self.reference.ask("fused", **call([1, 2, 32, 16], dropout=0.5))
        self.assertEqual(response["status"], "refused")
        self.assertIn("dropout", response["words"])

    def test_changes_free_a_kernel(self):
        masked = call([1, 2, 32, 16], mask=tensor([32, 32]), content="plain-causal")
        calls = {
            "move-dropout": call([1, 2, 32, 16], dropout=0.5),
            "no-dropout": call([1, 2, 32, 16], dropout=0.5),
            "pad-head": {**call([1, 2, 32, 16]), "v": tensor([1, 2, 32, 8])},
            "contiguous": {**call([1, 2, 32, 16]), "q": tensor([1, 2, 32, 16], strides=[1024, 512, 1, 32])},
            "drop-mask": masked,
            "detach-mask": masked,
        }
        for change, fields in calls.items():
            with self.subTest(change):
                before = self.reference.ask("fused", **fields)
                self.assertNotEqual(before["status"], "ok")
                after = self.ok("fused", changes=change, check=int("dropout" not in fields), **fields)
                self.assertEqual(after["backend"], "flash")
                self.assertLess(after.get("difference", 0), 2e-5)

    def test_what_cannot_be_read_or_built_is_an_answer(self):
        for fields in ({"nonsense": 1}, call([1, 2, 32, 16], "int32"), call([1, 2, 32, 16], device="cuda:99")):
            self.assertEqual(self.reference.ask("math", **fields)["status"], "error")
        if not torch.cuda.is_available():
            self.assertIn("no CUDA device", self.reference.ask("math", **call([1, 2, 32, 16], device="cuda:0"))["words"])
        huge = call([1, 1, 2 ** 22, 1])
        self.assertEqual(self.reference.ask("math", **huge)["status"], "oom")
        self.ok("math", **call([1, 2, 32, 16]))


if __name__ == "__main__":
    unittest.main()

"""Every tensor allocation is seen, and PyTorch's own profiler sees what it sees untraced."""

import sys
import unittest

import harness

PROFILE = """
import json, os, sys, tempfile, torch
before = torch.zeros(1000)
kept = torch.zeros(30)
for session in range(2):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        a = torch.zeros(256, 256)
        b = a @ a
        del a
        before = None
        kept = torch.softmax(b, -1)
        shared = torch.zeros(64).share_memory_()
        del b, shared
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'trace.json')
        profile.export_chrome_trace(path)
        events = json.load(open(path))['traceEvents']
    for event in events:
        if event.get('name') == '[memory]':
            print(event['args']['Bytes'], event['args'].get('Total Allocated'))
    print(profile.key_averages().table(sort_by='self_cpu_memory_usage').count('Mb'))
"""


class Memory(unittest.TestCase):
    def setUp(self):
        self.job = harness.Job()
        self.addCleanup(self.job.close)

    def test_python_balances_to_zero_with_the_right_peak(self):
        result = self.job.python("import torch; x = torch.zeros(1000, 1000); y = torch.ones(1000, 500); del x, y\n"
                                 "z = torch.ones(1000, 250)")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        final = self.job.only_log()[-1][1]
        self.assertEqual(int(final["live"]), 0)
        self.assertTrue(6_000_000 <= int(final["peak"]) < 6_001_000, final)
        self.assertTrue(7_000_000 <= int(final["allocated"]) < 7_001_000, final)

    def test_native_program_is_seen_from_before_main_on(self):
        self.job.run(harness.NATIVE_PROGRAMS / "native_allocations", "return", 0)
        start, final = (record for _, record in self.job.only_log())
        self.assertEqual((start["live"], start["peak"], start["allocated"], start["allocations"], start["frees"]),
                         ("4000", "4000", "4000", "1", "0"))
        self.assertEqual(int(final["live"]), 5000)
        self.assertEqual(int(final["peak"]), 5000 + 2**20)
        self.assertEqual(int(final["allocated"]), 5000 + 2**20)

    def test_eight_threads_lose_nothing(self):
        self.job.run(harness.NATIVE_PROGRAMS / "native_allocations", "threads", 0)
        final = self.job.only_log()[-1][1]
        self.assertEqual(int(final["reports"]), 4 + 2 * 8 * 1000)
        self.assertEqual(int(final["live"]), 5000)
        self.assertEqual(int(final["allocated"]), 5000 + 2**20 + 8 * 1000 * 64)

    def test_profiler_sees_what_it_sees_untraced(self):
        plain = harness.run_untraced(sys.executable, "-c", PROFILE)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertGreater(plain.stdout.count("\n"), 10)
        self.assertEqual(self.job.python(PROFILE).stdout, plain.stdout)
        self.assertEqual(self.job.python(PROFILE, FAKE_AGENT_REFUSE="no").stdout, plain.stdout)
        self.assertEqual(self.job.python(PROFILE, ATTNTRACE_SPOOL_DIR=None).stdout, plain.stdout)


if __name__ == "__main__":
    unittest.main()

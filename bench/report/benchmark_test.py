#!/usr/bin/env python3
"""Verifies that tools/benchmark runs its parts in turn, keeps their rows, fails when one is void, and when it is told to stop
leaves neither a process nor data behind. The programs are stand-ins: what the real ones print it does not verify."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import time
import unittest

BENCHMARK = pathlib.Path(__file__).resolve().parents[2] / "tools/benchmark"
DEADLINE_S = 60

ROW = {
    "bench": "limits", "limit": "append-one", "batch": 1, "threads": 1, "share": 0, "deliveries": 10, "distinct": 10,
    "repeat": 1, "seed": 1, "deliveries_per_second": 10.0, "batch_p99_us": 5.0, "batch_p50_us": 4.0, "batch_p999_us": 6.0,
}
PRINT = f"echo '{json.dumps(ROW)}'\n"
MICRO = "echo '{\"benchmarks\": []}'\n"
# Like the real ones: data in --directory, and gone a while after it is told to stop; then a line that is not whole.
HANG = PRINT + """trap 'sleep 0.5; rm -rf "$TMPDIR/data"; printf "{\\"bench\\""; kill "$sleeper"; wait; exit 1' TERM
mkdir "$TMPDIR/data"; sleep 600 & sleeper=$!; echo "$$ $sleeper" >"$STARTED"; wait
"""


class TheBenchmark(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("bench", "data"):
            (self.folder / name).mkdir()
        for name, script in {"onced": "", "bench/limits": PRINT, "bench/throughput": "", "bench/scale": "", "bench/peers": PRINT,
                             "bench/micro": MICRO}.items():
            self.stand_in(name, script)

    def stand_in(self, name, script):
        path = self.folder / name
        path.write_text('#!/bin/bash\necho "$0 $*" >>"${STARTED%/*}/calls"\n' + script, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def start(self, *options):
        command = [BENCHMARK, "--quick", "--programs", self.folder / "bench", "--directory", self.folder / "data",
                   "--out", self.folder / "out", *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "STARTED": str(self.folder / "started")})

    def run_it(self, *options):
        run = self.start(*options)
        said, _ = run.communicate(timeout=DEADLINE_S)
        return run.returncode, said

    def rows(self):
        return [json.loads(line) for line in (self.folder / "out/rows.jsonl").read_text(encoding="utf-8").splitlines()]

    def await_start(self):
        deadline = time.monotonic() + DEADLINE_S
        while not (self.folder / "started").exists() or not (self.folder / "started").read_text(encoding="utf-8").endswith("\n"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return [int(word) for word in (self.folder / "started").read_text(encoding="utf-8").split()]

    def test_each_part_runs_in_each_round_and_its_rows_say_so(self):
        status, said = self.run_it("--rounds", "2", "--without-peers")
        self.assertEqual(status, 0, said)
        self.assertEqual([(row.get("part"), row.get("round")) for row in self.rows()], [(None, None), ("limits", 1), ("limits", 2)])
        names = [line.split()[0].rsplit("/", 1)[1] for line in (self.folder / "calls").read_text(encoding="utf-8").splitlines()]
        one_round = ["throughput", "limits", "throughput", "throughput", "throughput"]
        self.assertEqual(names, one_round * 2 + ["throughput", "micro", "scale"])
        self.assertTrue((self.folder / "out/results.json").exists())
        self.assertEqual(list((self.folder / "data").iterdir()), [])

    def test_a_sweep_comes_before_the_peers_are_measured_with_what_it_found(self):
        self.run_it()
        calls = [line for line in (self.folder / "calls").read_text(encoding="utf-8").splitlines() if "bench/peers" in line]
        self.assertEqual(["--sweep" in call for call in calls], [True] * 3 + [False] * 3)
        self.assertTrue(all("--settings" in call for call in calls))

    def test_a_void_run_fails_the_whole_but_the_other_rows_are_kept(self):
        self.stand_in("bench/throughput", "exit 1\n")
        status, said = self.run_it("--without-peers")
        self.assertEqual(status, 1)
        self.assertIn("shares of round 1 (exit 1)", said)
        self.assertEqual([row.get("part") for row in self.rows()], [None, "limits"])

    def test_rows_that_the_report_refuses_fail_the_whole(self):
        self.stand_in("bench/limits", "echo '{\"bench\": \"limits\"}'\n")
        status, said = self.run_it("--without-peers")
        self.assertEqual(status, 1)
        self.assertIn("line 2", said)

    def test_told_to_stop_it_leaves_no_process_and_no_data_and_keeps_the_rows(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            (self.folder / "started").unlink(missing_ok=True)
            self.stand_in("bench/limits", HANG)
            run = self.start("--without-peers")
            processes = self.await_start()
            run.send_signal(number)
            said, _ = run.communicate(timeout=DEADLINE_S)
            self.assertEqual(run.returncode, status, said)
            self.assertIn("2 rows are kept", said)
            self.assertEqual([row.get("part") for row in self.rows()], [None, "limits"])
            self.assertEqual(list((self.folder / "data").iterdir()), [])
            for process in processes:
                self.assertRaises(ProcessLookupError, os.kill, process, 0)

    def test_the_rows_of_the_run_before_are_set_aside(self):
        self.run_it("--without-peers")
        before = (self.folder / "out/rows.jsonl").read_text(encoding="utf-8")
        self.run_it("--without-peers")
        self.assertEqual((self.folder / "out/rows-before.jsonl").read_text(encoding="utf-8"), before)

    def test_wrong_usage_exits_with_64(self):
        for options in (["--no-such-option"], ["--rounds", "0"], ["--rounds"], ["--directory", "/no/such/folder"]):
            status, said = self.run_it(*options)
            self.assertEqual(status, 64, said)


if __name__ == "__main__":
    unittest.main()

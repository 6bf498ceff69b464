#!/usr/bin/python3
"""Verifies the worker of tools/workers/python against `onced send`: outcomes and effects with its unique index, and that without
the index the same redeliveries leave more than one. Does not verify: its durability, its speed, or a rehearsal of it as a whole."""
import ctypes
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

WORKER = pathlib.Path(__file__).resolve().parents[2] / "tools/workers/python/worker.py"
ONCED = os.environ.get("ONCED_COMMAND", "build/release/onced")
PATIENCE_S = 30
SUM = {"operation_id": "order-1", "numbers": [1, 2, 3]}
OTHER_SUM = {"operation_id": "order-1", "numbers": [9]}


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class PythonWorker(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="onced-python-worker-")
        self.addCleanup(directory.cleanup)
        self.data = pathlib.Path(directory.name)
        self.endpoints = [f"--jobs=ipc://{self.data}/jobs", f"--replies=ipc://{self.data}/replies"]

    def start(self, command, **pipes):
        process = subprocess.Popen(command, text=True, preexec_fn=end_with_parent, **pipes)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_worker(self, *options):
        command = [WORKER, f"--data={self.data}", *self.endpoints, *options]
        worker = self.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual("ready", json.loads(worker.stdout.readline())["event"])
        return worker

    def start_send(self, *options):
        command = [ONCED, "send", *self.endpoints, f"--deadline={PATIENCE_S}s", *options]
        return self.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def send(self, *jobs, options=()):
        lines = "".join(json.dumps(job) + "\n" for job in jobs)
        return self.settled(self.start_send(*options), lines)

    def settled(self, send, text):
        output, _ = send.communicate(text, timeout=2 * PATIENCE_S)
        replies = [json.loads(line) for line in output.splitlines()]
        return [(reply["outcome"], reply.get("result")) for reply in replies]

    def count(self):
        output = subprocess.check_output([WORKER, f"--data={self.data}", "--count"], timeout=PATIENCE_S)
        return json.loads(output)

    def kill_after_commit(self, *options):
        """Lets a worker commit SUM, kills it before its reply, and starts it again: what the sender is told in the end."""
        worker = self.start_worker("--wait-after-commit", *options)
        send = self.start_send("--acknowledgement-timeout=200ms")
        send.stdin.write(json.dumps(SUM) + "\n")
        send.stdin.flush()
        self.assertEqual("committed order-1\n", worker.stdout.readline())
        worker.kill()
        worker.wait()
        self.start_worker(*options)
        return self.settled(send, "")

    def test_a_job_sent_twice_has_one_effect_and_its_first_result(self):
        self.start_worker()
        self.assertEqual([("stored", 6), ("duplicate", 6)], self.send(SUM, options=["--copies=2"]))
        self.assertEqual([("duplicate", 6)], self.send(SUM))
        self.assertEqual({"results": 1, "keys": 1}, self.count())

    def test_another_payload_under_the_same_id_is_a_conflict_and_the_first_stays(self):
        self.start_worker()
        self.assertEqual([("stored", 6), ("conflict", None)], self.send(SUM, OTHER_SUM))
        self.assertEqual([("duplicate", 6)], self.send(SUM))
        self.assertEqual({"results": 1, "keys": 1}, self.count())

    def test_a_bad_job_fails_by_itself(self):
        self.start_worker()
        bad = [{"operation_id": "no-numbers"}, {"operation_id": "big", "numbers": [2**63 - 1, 1]}]
        expected = [("invalid", None), ("failed", None), ("stored", 6)]
        self.assertEqual(expected, self.send(*bad, SUM))
        self.assertEqual([("invalid", None)], self.settled(self.start_send("--raw"), "no job"))
        self.settled(self.start_send("--raw-message"), "no message")
        self.assertEqual([("duplicate", 6)], self.send(SUM))

    def test_a_kill_between_commit_and_reply_leaves_one_effect(self):
        self.assertEqual([("duplicate", 6)], self.kill_after_commit())
        self.assertEqual({"results": 1, "keys": 1}, self.count())

    def test_without_the_index_a_kill_between_commit_and_reply_leaves_several_effects(self):
        self.assertEqual([("stored", 6)], self.kill_after_commit("--without-constraint"))
        self.assertGreater(self.count()["results"], 1)

    def test_without_the_index_a_job_sent_twice_has_two_effects(self):
        self.start_worker("--without-constraint")
        self.assertEqual([("stored", 6), ("stored", 6)], self.send(SUM, options=["--copies=2"]))
        self.assertEqual({"results": 2, "keys": 1}, self.count())


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in ("msgpack", "zmq")):
        print("skipped: python3-msgpack and python3-zmq are not installed")
        sys.exit(77)
    unittest.main()

#!/usr/bin/python3
"""Verifies that `onced rehearse` passes the worker of tools/workers/python, and fails it once its unique index is dropped. Does not
verify the worker's single answers: python_worker_test.py does."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER = ROOT / "tools/workers/python"
ONCED = os.path.abspath(os.environ.get("ONCED_COMMAND", "build/release/onced"))
PATIENCE_S = 120


class PythonWorker(unittest.TestCase):
    def rehearse(self, old, new):
        """The plan with something replaced: how the rehearsal ended, and the facts of its record."""
        directory = tempfile.TemporaryDirectory(prefix="onced-python-rehearsal-")
        self.addCleanup(directory.cleanup)
        plan, record = pathlib.Path(directory.name) / "plan.toml", pathlib.Path(directory.name) / "record"
        text = (WORKER / "plan.toml").read_text()
        self.assertIn(old, text)
        plan.write_text(text.replace(old, new))
        shutil.copy(WORKER / "jobs.jsonl", directory.name)
        ended = subprocess.run([ONCED, "rehearse", plan, "--out", record, "--fast"], cwd=ROOT, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
        return ended.returncode, json.loads((record / "record.json").read_text())["facts"]

    def test_with_its_unique_index_every_scenario_passes(self):
        code, facts = self.rehearse("", "")
        self.assertEqual([], [scenario["differences"] for scenario in facts["scenarios"] if scenario["differences"]])
        self.assertEqual((0, "passed"), (code, facts["verdict"]))
        self.assertLessEqual({scenario["name"] for scenario in facts["scenarios"] if scenario["status"] == "skipped"}, {"power loss"})

    def test_without_it_redeliveries_have_more_effects_than_there_are_jobs(self):
        code, facts = self.rehearse('"--wait-after-commit"', '"--wait-after-commit", "--without-constraint"')
        failed = {scenario["name"]: scenario["seen"]["effects"] for scenario in facts["scenarios"] if scenario["status"] == "failed"}
        self.assertEqual((1, "failed"), (code, facts["verdict"]))
        redelivered = {"duplicate publish", "lost acknowledgement", "kill after commit", "kill the sender after send", "changed intent"}
        self.assertEqual(redelivered, set(failed) - {"power loss"})
        self.assertTrue(all(effects > 4 for effects in failed.values()), failed)


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in ("msgpack", "zmq")):
        print("skipped: python3-msgpack and python3-zmq are not installed")
        sys.exit(77)
    unittest.main()

"""A fake provider as a test's own: tools/fake-provider started, called and counted, and ended with the test."""
import ctypes
import http.client
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "tools/fake-provider"
PATIENCE_S = 30


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class ProviderTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="onced-provider-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.state = self.directory / "effects.jsonl"

    def start(self, *options):
        command = [COMMAND, f"--state={self.state}", *options]
        self.provider = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=end_with_parent)
        self.addCleanup(self.provider.communicate)
        self.addCleanup(self.provider.kill)
        ready = json.loads(self.provider.stdout.readline())
        self.assertEqual("ready", ready["event"])
        self.url = ready["url"]

    def connect(self):
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def ask(self, method, path, body=None, headers=None):
        """Status and answer; an exception where there is none."""
        connection = self.connect()
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def call(self, key, body='{"cents":5}', **headers):
        return self.ask("POST", "/effects", body, {"Idempotency-Key": key, **headers})

    def call_unanswered(self, key):
        with self.assertRaises(ConnectionError):
            self.call(key)

    def effects(self):
        return [json.loads(line) for line in self.state.read_text().splitlines()]

    def keys(self):
        return [effect["key"] for effect in self.effects()]

    def await_effects(self, count):
        deadline = time.monotonic() + PATIENCE_S
        while len(self.effects()) < count:
            self.assertLess(time.monotonic(), deadline, "the effects do not come")
            time.sleep(0.001)

    def end(self, code):
        output, errors = self.provider.communicate(timeout=PATIENCE_S)
        self.assertEqual((code, "", ""), (self.provider.returncode, output, errors))

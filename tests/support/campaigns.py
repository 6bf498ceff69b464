"""What campaigns in Python share: a directory, a worker and its provider, commands, findings."""
import collections
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONCED = os.environ.get("ONCED_COMMAND", ROOT / "build/release/onced")
PATIENCE_S = 120


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def begin(*words, **more):
    return subprocess.Popen([str(word) for word in words], text=True, preexec_fn=end_with_parent, **more)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


class Campaign:
    """One campaign: `figures()` is what a subclass does and counts; `check` notes what does not hold."""

    def __init__(self, options):
        self.options = options
        self.chance = random.Random(options.seed)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="onced-campaign-"))
        self.data, self.notes = self.directory / "data", self.directory / "notes"
        self.notes.mkdir()
        self.endpoints = [f"--{name}=ipc://{self.directory}/{name}" for name in ("jobs", "replies")]
        self.log = open(self.directory / "worker.log", "a")
        self.configuration = []
        self.kills = collections.Counter()
        self.findings = []

    def check(self, holds, *finding):
        if not holds:
            self.findings.append(" ".join(str(part) for part in finding))

    def configure(self, type_name, command, environment, **more):
        table = {"command": [str(command)], "environment": environment, "backoff": "20ms", "backoff-max": "200ms"} | more
        text_lines = [f"[handlers.{type_name}]"]
        for name, value in table.items():
            text = json.dumps(value)
            if isinstance(value, dict):
                text = "{ " + ", ".join(f"{key} = {json.dumps(inner)}" for key, inner in value.items()) + " }"
            text_lines.append(f"{name} = {text}")
        path = self.directory / "onced.toml"
        path.write_text("\n".join(text_lines) + "\n")
        self.configuration = ["--config", path]

    def worker_words(self, *options):
        return [ONCED, "serve", "--data", self.data, *self.configuration, *self.endpoints, *options]

    def start_worker(self, *options):
        """True: it is ready. Killed at a declared step it may die before it is."""
        self.worker = begin(*self.worker_words(*options), stdout=subprocess.PIPE, stderr=self.log)
        return self.worker.stdout.readline() != ""

    def end_worker(self, number):
        self.worker.send_signal(number)
        self.worker.communicate(timeout=PATIENCE_S)

    def command(self, *words):
        done = subprocess.run([str(word) for word in (ONCED, *words)], capture_output=True, text=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def write_jobs(self, name, jobs):
        path = self.directory / name
        path.write_text("".join(json.dumps(job) + "\n" for job in jobs))
        return path

    def await_that(self, holds, what):
        """True once `holds()` is; a finding when patience ends first."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                self.check(False, "never came:", what)
                return False
            time.sleep(0.005)
        return True

    def run(self):
        """Prints a JSON line of figures. 0: all held; 1: not, and the directory is kept."""
        begun = time.monotonic()
        figures = self.figures()
        self.log.close()
        print(json.dumps({"campaign": self.options.campaign, "seed": self.options.seed, **figures,
                          "kills": sum(self.kills.values()), "kills_by_step": self.kills, "findings": len(self.findings),
                          "seconds": round(time.monotonic() - begun)}))
        for finding in self.findings[:20]:
            print(finding, file=sys.stderr)
        if self.findings:
            print(f"kept: {self.directory}", file=sys.stderr)
            return 1
        shutil.rmtree(self.directory)
        return 0

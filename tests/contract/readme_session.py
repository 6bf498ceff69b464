#!/usr/bin/env python3
"""Runs the session of docs/contract.md as it is printed, in a clean directory, and holds what is printed to the page.

Usage: tests/contract/readme_session.py ONCED

Each `$` line of a `console` block is typed into one bash with job control, as a new user would type it; the lines below
it are what must be printed, in any order (a worker in the background prints too). What differs from run to run (times,
boots, builds, processes, attempts, ids of dead letters) is not compared. Not run: lines that take long and have tests of their own
(bench, rehearse) or open a browser. The ports are the test's own, so that tests may run beside each other.
"""
import collections
import os
import pathlib
import queue
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_S = 60
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "contract.md"
NOT_RUN = ("onced bench", "onced rehearse", "xdg-open")
# The log of the worker, which the page leaves out, and what bash tells of the worker that was to be killed.
NOT_SHOWN = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z (info|warning) |line \d+:.*Killed")
DONE = "the command is done:"
# What differs from run to run.
VOLATILE = [
    (re.compile(r'"(boot|digest|id|now_id)":"[0-9a-f]+"'), r'"\1":"#"'),
    (re.compile(r'"(\w+_at)":"[^"]+"'), r'"\1":"#"'),
    (re.compile(r'"worker_build":"[^"]+"'), '"worker_build":"#"'),
    (re.compile(r'"attempts":\d+'), '"attempts":#'),  # a slow machine makes a sender ask again
    (re.compile(r"tcp://127\.0\.0\.1:\d+"), "tcp://#"),
    (re.compile(r"held by process \d+"), "held by process #"),
]
# A wrapper that gives the command the test's ports, and is the worker then, so that signals reach it.
WRAPPER = """#!/bin/bash
case $1 in
  serve | send) exec {onced} "$@" --jobs {jobs} --replies {replies} ;;
  *) exec {onced} "$@" ;;
esac
"""


def blocks():
    """Of each block, the commands with the lines that they print."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        commands = []
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
        yield commands


def comparable(lines):
    for pattern, stable in VOLATILE:
        lines = [pattern.sub(stable, line) for line in lines]
    return collections.Counter(lines)


def free_endpoint(taken):
    """An endpoint of a free port; `taken` keeps it from other callers until the worker has it."""
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    taken.append(probe)
    return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


class Session:
    """One bash, into which commands are typed."""

    def __init__(self, directory):
        self.shell = subprocess.Popen(
            ["bash", "--norc"], cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.type("set -m", 0)

    def read(self):
        for line in self.shell.stdout:
            self.lines.put(line.rstrip("\n"))

    def type(self, command, expected):
        """What it prints: until it has ended and has printed as many lines as are expected."""
        print(file=self.shell.stdin)
        print(command, file=self.shell.stdin)
        print(f"echo '{DONE}'", file=self.shell.stdin, flush=True)
        printed, done = [], False
        deadline = time.monotonic() + PATIENCE_S
        while not done or len(printed) < expected:
            try:
                line = self.lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                printed.append("(waited in vain)")
                break
            if line == DONE:
                done = True
            elif not NOT_SHOWN.search(line):
                printed.append(line)
        return printed

    def end(self):
        """Ends the workers that still run, by the shell that has started them."""
        print("kill $(jobs -p); wait; exit", file=self.shell.stdin, flush=True)
        try:
            self.shell.wait(PATIENCE_S)
        finally:
            self.shell.kill()


def run(session):
    wrong = 0
    for commands in blocks():
        for command, expected in commands:
            if command.startswith(NOT_RUN):
                continue
            printed = session.type(command, len(expected))
            # A command without lines below it may print what the page does not repeat.
            if expected and comparable(printed) != comparable(expected):
                wrong += 1
                print(f"$ {command}\ndocs/contract.md:\n  " + "\n  ".join(expected) + "\nprinted:\n  " + "\n  ".join(printed))
            elif any(line.startswith(("onced: ", "bash: ")) for line in printed) and not expected:
                wrong += 1
                print(f"$ {command}\nprinted:\n  " + "\n  ".join(printed))
    return wrong


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 64
    onced = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="onced-contract-") as name:
        directory = pathlib.Path(name)
        command = directory / "build" / "release" / "onced"
        command.parent.mkdir(parents=True)
        taken = []
        jobs, replies = free_endpoint(taken), free_endpoint(taken)
        for probe in taken:
            probe.close()
        command.write_text(WRAPPER.format(onced=onced, jobs=jobs, replies=replies), encoding="utf-8")
        command.chmod(0o755)
        os.environ.pop("BASH_ENV", None)
        session = Session(directory)
        try:
            wrong = run(session)
        finally:
            session.end()
    print(f"{wrong} commands print another thing than docs/contract.md says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

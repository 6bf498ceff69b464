#!/usr/bin/python3
"""Floods a worker, kind by kind, and measures what a good sender beside each flood notices of it: one that has one small job in flight,
says hello every five seconds and sends again after a second, as docs/protocol.md says.

Does not show: floods of more connections than the worker plans for, and a network that is full.

Usage: campaign.py [--seconds S] [--ratio R] [--share Q] [--rows N] [--memory MIB] [--more N] [--seed N] [FLOOD...]

Prints a JSON line for each flood (those whose name has one of the words; with --more those of every run and N of the others, drawn by
--seed, by default the number of the day; else all, the long form): p50 and p99 of the time to a final outcome in
milliseconds, alone and beside the flood on the same worker; `ratio`, the time in which a share Q (default 0.99) of the jobs was settled beside
the flood by that alone; how many messages of the flood were taken; and the most memory of the worker. Exit 0: every job was settled, and
is a duplicate when it is sent again; no ratio was above R (default 10); the memory stayed below what was planned; `onced verify` found
no problem. 1: not.
"""
import argparse
import ctypes
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import msgpack
import zmq

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kinds import (FLOODS, HANDLERS, LONG_FLOODS, MORE_FLOODS, VICTIM, delivery, hello, large_garbage, pack, query,  # noqa: E402
                   sockets)

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONCED = os.environ.get("ONCED_COMMAND", ROOT / "build/release/onced")
RESEND_S, HELLO_S, PATIENCE_S = 1.0, 5.0, 120
FINAL = range(6)
ALL_FLOODS = FLOODS | MORE_FLOODS | LONG_FLOODS
DUPLICATE = 1
QUEUE_JOBS_MAX, QUEUE_BYTES_MAX = "20000", "64MiB"
RELAY_MESSAGES_MAX = "1000"


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class GoodSender:
    def __init__(self, worker, sender=VICTIM):
        self.context = zmq.Context()
        (self.jobs,) = sockets(self.context, zmq.PUSH, worker.jobs, 1)
        (self.replies,) = sockets(self.context, zmq.DEALER, worker.replies, 1)
        self.sender, self.sequence, self.said = sender, 0, 0.0
        self.greet()

    def greet(self):
        self.replies.send(hello(self.sender))
        self.said = time.monotonic()

    def job(self, number):
        return pack({"operation_id": f"good-{self.sender.hex()}-{number}", "numbers": [number, 1]})

    # How long, in seconds, until the job has its final outcome.
    def settle(self):
        self.sequence += 1
        job = self.job(self.sequence)
        begun = time.monotonic()
        for attempt in itertools.count(1):
            if attempt > 1 or time.monotonic() - self.said > HELLO_S:
                self.greet()
            self.jobs.send(pack([1, self.sender, [delivery(self.sequence, attempt, job)]]))
            again = time.monotonic() + RESEND_S
            while self.replies.poll(max(0, (again - time.monotonic()) * 1000)):
                message = msgpack.unpackb(self.replies.recv())
                if message[1] == "replies" and any(
                        reply[0] == self.sequence and reply[2] in FINAL for reply in message[4]):
                    return time.monotonic() - begun
            if time.monotonic() - begun > PATIENCE_S:
                return None

    # How many of all its jobs are answered as duplicates when they are sent again: each of them has had its one effect.
    def duplicates(self):
        seen, deadline = set(), time.monotonic() + PATIENCE_S
        while len(seen) < self.sequence and time.monotonic() < deadline:
            self.greet()
            missing = [number for number in range(1, self.sequence + 1) if number not in seen][:1024]
            self.jobs.send(pack([1, self.sender, [delivery(number, 9, self.job(number)) for number in missing]]))
            again = time.monotonic() + RESEND_S
            while not seen.issuperset(missing) and self.replies.poll(max(0, (again - time.monotonic()) * 1000)):
                message = msgpack.unpackb(self.replies.recv())
                replies = message[4] if message[1] == "replies" else []
                if any(reply[2] in FINAL and reply[2] != DUPLICATE for reply in replies):
                    return len(seen)
                seen |= {reply[0] for reply in replies if reply[2] == DUPLICATE}
        return len(seen)

    def settle_for(self, seconds, least):
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end or len(times) < least:
            taken = self.settle()
            if taken is None:
                return times + [float("inf")]
            times.append(taken)
        return times


class Worker:
    def __init__(self, memory):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="onced-floods-"))
        self.log = open(self.directory / "worker.log", "w", encoding="utf-8")
        self.data, configuration = self.directory / "data", self.directory / "onced.toml"
        self.relay_jobs, self.relay_replies = (f"ipc://{self.directory}/relay-{name}" for name in ("jobs", "replies"))
        self.kept = []  # sockets of a flood
        configuration.write_text(HANDLERS.replace("DIRECTORY", str(self.directory)), encoding="utf-8")
        self.process = subprocess.Popen(
            [str(ONCED), "serve", "--config", str(configuration), "--data", str(self.data), "--jobs", "tcp://127.0.0.1:*",
             "--replies", "tcp://127.0.0.1:*", "--memory", f"{memory}MiB", "--queue-jobs-max", QUEUE_JOBS_MAX,
             "--queue-bytes-max", QUEUE_BYTES_MAX, "--relay-messages-max", RELAY_MESSAGES_MAX],
            stdout=subprocess.PIPE, stderr=self.log, text=True, preexec_fn=end_with_parent)
        ready = json.loads(self.process.stdout.readline())
        self.jobs, self.replies = ready["jobs"], ready["replies"]
        self.large_letter = ""

    # A dead letter of almost 1 MiB, and rows to count.
    def prepare(self, rows):
        context = zmq.Context()
        (push,) = sockets(context, zmq.PUSH, self.jobs, 1)
        push.send(large_garbage(0, 0))
        for batch in range(rows // 4096):
            jobs = [pack({"operation_id": f"row-{batch}-{at}", "numbers": [at]}) for at in range(4096)]
            push.send(pack([1, b"rows" * 4, [delivery(batch * 4096 + at + 1, 1, job) for at, job in enumerate(jobs)]]))
        (asker,) = sockets(context, zmq.DEALER, self.replies, 1)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            asker.send(query({"query": "stats"}))
            if msgpack.unpackb(msgpack.unpackb(asker.recv())[2])["stored"] >= rows // 4096 * 4096:
                break
            time.sleep(0.05)
        asker.send(query({"query": "dead-letters list", "rows": 1}))
        letters = msgpack.unpackb(msgpack.unpackb(asker.recv())[2])["rows"]
        self.large_letter = letters[0]["id"]
        context.destroy(0)

    def stats(self):
        context = zmq.Context()
        (asker,) = sockets(context, zmq.DEALER, self.replies, 1)
        asker.send(query({"query": "stats"}))
        answered = asker.poll(PATIENCE_S * 1000)
        answer = msgpack.unpackb(msgpack.unpackb(asker.recv())[2]) if answered else {}
        context.destroy(0)
        return answer

    # The exit code of a reading of all rows: 0 where every row and every count is as it must be.
    def verify(self):
        done = subprocess.run([str(ONCED), "verify", "--data", str(self.data)], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        return done.returncode

    def memory_max_mib(self):
        for line in open(f"/proc/{self.process.pid}/status", encoding="ascii"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
        return 0

    def end(self, keep):
        self.process.kill()
        self.process.wait()
        if not keep:
            shutil.rmtree(self.directory)


def quantile(times, share):
    times = sorted(times)
    return round(1000 * times[min(len(times) - 1, int(len(times) * share))], 2)


# The good sender alone and beside the flood on one worker.
def measure(name, options):
    worker = Worker(options.memory)
    worker.prepare(options.rows)
    good = GoodSender(worker)
    good.settle_for(0.5, 50)
    alone = good.settle_for(options.seconds / 2, 100)
    flood = multiprocessing.get_context("fork").Process(target=ALL_FLOODS[name], args=(worker,), daemon=True)
    flood.start()
    time.sleep(1)  # let what it can fill be full
    beside = good.settle_for(options.seconds, 100)
    flood.kill()
    flood.join()
    duplicates, stats = good.duplicates(), worker.stats()
    taken = {name: stats.get(name) for name in ("messages", "greetings", "queries", "dropped", "queue_bytes", "relay_messages")}
    memory = worker.memory_max_mib()
    figures = {
        "flood": name, "alone_p50_ms": quantile(alone, 0.5), "alone_p99_ms": quantile(alone, 0.99), "jobs": len(beside),
        "p50_ms": quantile(beside, 0.5), "p99_ms": quantile(beside, 0.99), "max_ms": quantile(beside, 1), "memory_mib": memory, **taken}
    figures["ratio"] = round(quantile(beside, options.share) / quantile(alone, options.share), 1)
    settled = float("inf") not in beside and worker.process.poll() is None
    figures["twice"], figures["verify"] = good.sequence - duplicates, worker.verify()
    exact = figures["twice"] == 0 and figures["verify"] == 0
    held = settled and exact and figures["ratio"] <= options.ratio and memory <= options.memory
    figures["held"] = held
    print(json.dumps(figures), flush=True)
    worker.end(not settled or not exact)
    return held


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--ratio", type=float, default=10)
    parser.add_argument("--share", type=float, default=0.99)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--memory", type=int, default=512)
    parser.add_argument("--more", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time() // 86400))
    parser.add_argument("floods", nargs="*")
    options = parser.parse_args()
    drawn = list(ALL_FLOODS)
    if options.floods:
        drawn = [name for name in ALL_FLOODS if any(part in name for part in options.floods)]
    elif options.more is not None:
        drawn = [*FLOODS, *random.Random(options.seed).sample(list(MORE_FLOODS), options.more)]
        print(json.dumps({"seed": options.seed, "floods": len(drawn)}), flush=True)
    held = [measure(name, options) for name in drawn]
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

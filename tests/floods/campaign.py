#!/usr/bin/python3
"""Floods a worker, kind by kind, and measures what a good sender beside each flood notices of it: one that has one small job in flight,
says hello every five seconds and sends again after a second, as docs/protocol.md says.

Does not show: floods of more connections than the worker plans for, and a network that is full.

Usage: campaign.py [--seconds S] [--ratio R] [--share Q] [--rows N] [--memory MIB] [FLOOD...]

Prints a JSON line for each flood (those whose name has one of the words, else all): p50 and p99 of the time to a final outcome in
milliseconds, alone and beside the flood on the same worker; `ratio`, the time in which a share Q (default 0.99) of the jobs was settled beside
the flood by that alone; how many messages of the flood were taken; and the most memory of the worker. Exit 0: every job was settled, no
ratio was above R (default 10), and the memory stayed below what was planned; 1: not.
"""
import argparse
import contextlib
import ctypes
import functools
import hashlib
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONCED = os.environ.get("ONCED_COMMAND", ROOT / "build/release/onced")
MIB = 1024 * 1024
VICTIM = b"victim..........".ljust(16, b".")
RESEND_S, HELLO_S, PATIENCE_S = 1.0, 5.0, 120
FINAL = range(6)


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


def hello(sender):
    return pack([1, sender])


def query(request):
    return pack([1, bytes(16), pack(request)])


def delivery(sequence, attempt, job):
    return [sequence, hashlib.sha256(job).digest()[:8], attempt, 0, job]


def sockets(context, kind, endpoint, count, **options):
    made = []
    for _ in range(count):
        socket = context.socket(kind)
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(endpoint)
        made.append(socket)
    return made


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

    # How long, in seconds, until the job has its final outcome.
    def settle(self):
        self.sequence += 1
        job = pack({"operation_id": f"good-{self.sender.hex()}-{self.sequence}", "numbers": [self.sequence, 1]})
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

    def settle_for(self, seconds, least):
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end or len(times) < least:
            taken = self.settle()
            if taken is None:
                return times + [float("inf")]
            times.append(taken)
        return times


# --- Floods: each runs in a process of its own until it is ended, and sends as fast as it can ----------------------

def push_all(worker, connections, make):
    context = zmq.Context()
    pushers = sockets(context, zmq.PUSH, worker.jobs, connections, sndhwm=2)
    pending = [make(at, 0) for at in range(connections)]
    for number in itertools.count(1):
        sent = False
        for at, socket in enumerate(pushers):
            with contextlib.suppress(zmq.Again):
                socket.send(pending[at], zmq.DONTWAIT)
                pending[at] = make(at, number)
                sent = True
        if not sent:
            time.sleep(0.001)


def ask_all(worker, connections, make, **options):
    context = zmq.Context()
    peers = sockets(context, zmq.DEALER, worker.replies, connections, **options)
    for number in itertools.count():
        sent = False
        for at, socket in enumerate(peers):
            with contextlib.suppress(zmq.Again):
                socket.send(make(at, number), zmq.DONTWAIT)
                sent = True
            with contextlib.suppress(zmq.Again):
                while options.get("rcvhwm") != 1:
                    socket.recv(zmq.DONTWAIT)
        if not sent:
            time.sleep(0.001)


# Made once, so that they cost the flooder nothing. Bad jobs that come again are written again, with their count.
@functools.cache
def large_bytes(number):
    return b"\xc1" + bytes([number]) * 16 + bytes(MIB - 1024)


@functools.cache
def large_bad_numbered(at, number):
    return pack([1, b"flood" + bytes([at]) * 11, [delivery(number + 1, 1, large_bytes(16 * at + number))]])


def large_bad(at, number):
    return large_bad_numbered(at, number % 16)


def large_garbage(at, number):
    return large_bytes(16 * at + number % 16)


def many_bad(at, number):
    sender = b"flood" + bytes([at]) * 11
    return pack([1, sender, [delivery(number * 4096 + one, 1, b"\xc1" + os.urandom(8)) for one in range(4096)]])


def large_good(at, number):
    sender = b"flood" + bytes([at]) * 11
    job = pack({"operation_id": f"large-{at}-{os.getpid()}-{number}", "numbers": [2**40 + at] * 65000})
    return pack([1, sender, [delivery(number + 1, 1, job)]])


FLOODS = {
    "bad jobs of 1 MiB": lambda worker: push_all(worker, 8, large_bad),
    "bare garbage of 1 MiB": lambda worker: push_all(worker, 8, large_garbage),
    "bare garbage of 32 bytes": lambda worker: push_all(worker, 8, lambda *_: b"\xc1" + os.urandom(31)),
    "4,096 bad jobs a message": lambda worker: push_all(worker, 4, many_bad),
    "good jobs of 585 KiB": lambda worker: push_all(worker, 4, large_good),
    "hellos with the good sender's id": lambda worker: ask_all(worker, 4, lambda *_: hello(VICTIM)),
    "hellos with the good sender's id, unread": lambda worker: ask_all(worker, 4, lambda *_: hello(VICTIM), rcvhwm=1),
    "hellos with random ids": lambda worker: ask_all(worker, 4, lambda *_: hello(os.urandom(16))),
    "count queries": lambda worker: ask_all(worker, 2, lambda *_: query({"query": "count"})),
    "stats queries": lambda worker: ask_all(worker, 4, lambda *_: query({"query": "stats"})),
    "garbage on the replies socket": lambda worker: ask_all(worker, 4, lambda *_: os.urandom(24)),
    "answers of 1 MiB that nobody reads": lambda worker: ask_all(
        worker, 20, lambda *_: query({"query": "dead-letters show", "id": worker.large_letter}), rcvhwm=1, rcvbuf=4096),
}


class Worker:
    def __init__(self, memory):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="onced-floods-"))
        self.log = open(self.directory / "worker.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(ONCED), "serve", "--data", str(self.directory / "data"), "--jobs", "tcp://127.0.0.1:*", "--replies",
             "tcp://127.0.0.1:*", "--memory", f"{memory}MiB"],
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
    flood = multiprocessing.get_context("fork").Process(target=FLOODS[name], args=(worker,), daemon=True)
    flood.start()
    time.sleep(1)  # let what it can fill be full
    beside = good.settle_for(options.seconds, 100)
    flood.kill()
    flood.join()
    taken = {name: count for name, count in worker.stats().items() if name in ("messages", "greetings", "queries", "dropped")}
    memory = worker.memory_max_mib()
    figures = {
        "flood": name, "alone_p50_ms": quantile(alone, 0.5), "alone_p99_ms": quantile(alone, 0.99), "jobs": len(beside),
        "p50_ms": quantile(beside, 0.5), "p99_ms": quantile(beside, 0.99), "max_ms": quantile(beside, 1), "memory_mib": memory, **taken}
    figures["ratio"] = round(quantile(beside, options.share) / quantile(alone, options.share), 1)
    settled = float("inf") not in beside and worker.process.poll() is None
    held = settled and figures["ratio"] <= options.ratio and memory <= options.memory
    figures["held"] = held
    print(json.dumps(figures), flush=True)
    worker.end(not settled)
    return held


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--ratio", type=float, default=10)
    parser.add_argument("--share", type=float, default=0.99)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--memory", type=int, default=512)
    parser.add_argument("floods", nargs="*")
    options = parser.parse_args()
    chosen = [name for name in FLOODS if not options.floods or any(part in name for part in options.floods)]
    held = [measure(name, options) for name in chosen]
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main())

"""The kinds of floods: each runs in a process of its own until it is ended, and sends as fast as it can."""
import contextlib
import functools
import hashlib
import itertools
import os
import random
import socket as sockets_of_the_system
import struct
import time

import msgpack
import zmq

MIB = 1024 * 1024
VICTIM = b"victim..........".ljust(16, b".")


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


def hello(sender):
    return pack([1, sender])


def query(request):
    return pack([1, bytes(16), pack(request)])


def tag_of(job):
    return hashlib.sha256(job).digest()[:8]


def delivery(sequence, attempt, job):
    return [sequence, tag_of(job), attempt, 0, job]


def named(name, at):
    return name.encode()[:15].ljust(15, b".") + bytes([at])


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


def push_all(worker, connections, make):
    context = zmq.Context()
    pushers = sockets(context, zmq.PUSH, worker.jobs, connections, sndhwm=2)
    pending = [make(at, 0) for at in range(connections)]
    for number in itertools.count(1):
        sent = False
        for at, socket in enumerate(pushers):
            with contextlib.suppress(zmq.Again):
                message = pending[at]
                socket.send_multipart(message if isinstance(message, list) else [message], zmq.DONTWAIT)
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


def sum_job(name, *numbers):
    return pack({"operation_id": name, "numbers": list(numbers)})


def typed_job(type_name, at, number, **payload):
    return pack({"operation_id": f"{type_name}-{at}-{os.getpid()}-{number}", "type": type_name, **payload})


def batch_of(sender, jobs, first=1):
    return pack([1, sender, [delivery(first + at, 1, job) for at, job in enumerate(jobs)]])


# Peers that read, but one answer in a tenth of a second each.
def ask_and_read_little(worker):
    context = zmq.Context()
    peers = sockets(context, zmq.DEALER, worker.replies, 20, rcvhwm=1, rcvbuf=4096)
    request = query({"query": "dead-letters show", "id": worker.large_letter})
    for turn in itertools.count():
        for peer in peers:
            with contextlib.suppress(zmq.Again):
                for _ in range(8):
                    peer.send(request, zmq.DONTWAIT)
        with contextlib.suppress(zmq.Again):
            peers[turn % len(peers)].recv(zmq.DONTWAIT)
        time.sleep(0.1 / len(peers))


# Connections that are reset at once, half of them in the middle of ZeroMQ's greeting.
def connect_and_go(worker):
    host, port = worker.jobs.removeprefix("tcp://").rsplit(":", 1)
    for number in itertools.count():
        with contextlib.suppress(OSError), sockets_of_the_system.create_connection((host, int(port)), timeout=5) as peer:
            peer.setsockopt(sockets_of_the_system.SOL_SOCKET, sockets_of_the_system.SO_LINGER, struct.pack("ii", 1, 0))
            if number % 2:
                peer.sendall((b"\xff" + bytes(8) + b"\x7f\x03\x00NULL")[:number % 15])


# The frame closes the connection, and ZeroMQ makes another.
def over_the_limit(at, number):
    return bytes([0xC1, at, number % 256]) + bytes(MIB)


def queued_mebibyte(at, number):
    jobs = [typed_job("idle", at, 4 * number + one, text="x" * 240_000) for one in range(4)]
    return batch_of(named("queued", at), jobs, 4 * number + 1)


def accepted_again(at, number):
    jobs = [typed_job("idle", at, one) for one in range(256)]
    return pack([1, named("again", at), [delivery(one + 1, number + 1, job) for one, job in enumerate(jobs)]])


def conflicts(at, number):
    jobs = [sum_job("contested", at, number, one) for one in range(64)]
    return batch_of(named("conflicts", at), jobs, 64 * number + 1)


def small_good(at, number):
    jobs = [sum_job(f"small-{at}-{os.getpid()}-{number}-{one}", one) for one in range(64)]
    return batch_of(named("small", at), jobs, 64 * number + 1)


def hot_key(at, number):
    return batch_of(named("hot", at), [sum_job("hot", 1, 2, 3)], number + 1)


def one_key_in_a_batch(at, number):
    return batch_of(named("one key", at), [sum_job(f"one-{at}-{number}", number)] * 4096, 4096 * number + 1)


def new_senders(at, number):
    return batch_of(os.urandom(16), [sum_job(f"new-{os.getpid()}-{at}-{number}", number)])


def other_versions(at, number):
    return pack([2 + random.getrandbits(32), named("version", at), [delivery(number + 1, 1, sum_job("never"))]])


def empty(at, number):
    return b"" if number % 2 else batch_of(named("empty", at), [])


def several_frames(at, number):
    return [batch_of(named("frames", at), [sum_job(f"frames-{at}-{number}", 1)])] + [b"more"] * 7


def nested(at, number):
    value = number
    for _ in range(14 + number % 4):  # with the job's map and its field: below, at and above 16
        value = [value]
    return batch_of(named("nested", at), [sum_job(f"nested-{at}-{number}-{one}", value) for one in range(64)], 64 * number + 1)


def other_tags(at, number):
    job = sum_job(f"other-{at}-{number}", 1)
    return pack([1, VICTIM, [[one + 1, os.urandom(8), 1, 0, job] for one in range(64)]])


def queued(type_name, jobs_a_message=16):
    def make(at, number):
        jobs = [typed_job(type_name, at, jobs_a_message * number + one) for one in range(jobs_a_message)]
        return batch_of(named(type_name, at), jobs, jobs_a_message * number + 1)
    return make


# What an operator does, beside a flood of what he does it to.
def redrive_all(worker):
    context = zmq.Context()
    (operator,) = sockets(context, zmq.DEALER, f"ipc://{worker.directory}/data/control.sock", 1)
    pushers = sockets(context, zmq.PUSH, worker.jobs, 2, sndhwm=2)
    for number in itertools.count():
        for at, pusher in enumerate(pushers):
            with contextlib.suppress(zmq.Again):
                jobs = [typed_job("unknown", at, 16 * number + one) for one in range(16)]
                pusher.send(batch_of(named("unknown", at), jobs, 16 * number + 1), zmq.DONTWAIT)
        operator.send(query({"query": "dead-letters list", "rows": 100, "after": os.urandom(16).hex()}))
        for letter in msgpack.unpackb(msgpack.unpackb(operator.recv())[2]).get("rows", []):
            operator.send(query({"query": "dead-letters redrive", "id": letter["id"], "by": "kim", "why": "a flood"}))
            operator.recv()


# Reads nothing of what is relayed to it.
def relay_to_nobody(worker):
    context = zmq.Context()
    for endpoint, kind in ((worker.relay_jobs, zmq.PULL), (worker.relay_replies, zmq.ROUTER)):
        silent = context.socket(kind)
        silent.rcvhwm = 1
        silent.bind(endpoint)
        worker.kept.append(silent)
    push_all(worker, 4, queued("relayed"))


def absent_key(at, number):
    return query({"query": "get", "operation_id": f"absent-{at}-{number}-{random.random()}"})


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

# The configuration of each worker: some floods are of queued jobs.
SHELL = 'environment = {}\nbackoff = "50ms"\nconcurrency = 2\n'
HANDLERS = f"""
[handlers.idle]
command = ["/bin/sleep", "3600"]
[handlers.failing]
command = ["/bin/sh", "-c", "exit 65"]
{SHELL}
[handlers.relayed]
command = ["/bin/echo", '{{"result":1,"messages":[{{"to":"nobody","job":{{"type":"sum","numbers":[1]}}}}]}}']
messages = true
{SHELL}
[relays.nobody]
jobs = "ipc://DIRECTORY/relay-jobs"
replies = "ipc://DIRECTORY/relay-replies"
"""

# Too many for each run, which takes a few of them.
MORE_FLOODS = {
    "answers of 1 MiB that are read slowly": ask_and_read_little,
    "connections that come and go": connect_and_go,
    "messages over 1 MiB": lambda worker: push_all(worker, 4, over_the_limit),
    "queued jobs, 1 MiB a message, to the queue's cap": lambda worker: push_all(worker, 4, queued_mebibyte),
    "one hot key": lambda worker: push_all(worker, 8, hot_key),
    "4,096 deliveries of one key a message": lambda worker: push_all(worker, 4, one_key_in_a_batch),
    "jobs of ever new senders": lambda worker: push_all(worker, 4, new_senders),
    "unknown protocol versions": lambda worker: push_all(worker, 4, other_versions),
    "hellos of unknown protocol versions": lambda worker: ask_all(
        worker, 4, lambda *_: pack([2 + random.getrandbits(32), os.urandom(16)])),
    "empty messages and batches": lambda worker: push_all(worker, 4, empty),
    "messages of eight frames": lambda worker: push_all(worker, 4, several_frames),
    "tags of other bytes under the good sender's id": lambda worker: push_all(worker, 4, other_tags),
    "queries for absent keys": lambda worker: ask_all(worker, 4, absent_key),
    "jobs whose handler fails": lambda worker: push_all(worker, 4, queued("failing")),
    "redrives beside a flood of dead letters": redrive_all,
    "results for a relay that reads nothing": relay_to_nobody,
}

# The long form alone: small messages of many deliveries fill whole batches, for which a good job waits. So its ratio is that of a full
# batch to one job, and swings with what else the machine does.
LONG_FLOODS = {
    "accepted jobs again and again": lambda worker: push_all(worker, 4, accepted_again),
    "good jobs, 64 a message": lambda worker: push_all(worker, 4, small_good),
    "conflicts on one key": lambda worker: push_all(worker, 4, conflicts),
    "jobs nested to the limit": lambda worker: push_all(worker, 4, nested),
}

#!/usr/bin/python3
"""A worker that is not onced: jobs of type sum by docs/protocol.md, and a row for each effect in SQLite, guarded by a unique index and
nothing else. For rehearsals; it has no dead letters, no queries, and compares payloads simply."""
import argparse, hashlib, json, math, os, signal, sqlite3, sys
import msgpack, zmq

STORED, DUPLICATE, CONFLICT, INVALID, FAILED = range(5)
BUSY = 7

def tag_of(data):
    return hashlib.sha256(data).digest()[:8]

def read_job(data):
    job = msgpack.unpackb(data)
    operation, numbers = job["operation_id"], [int(n) if n == int(n) else n for n in job["numbers"]]
    if job.get("type", "sum") != "sum" or not isinstance(operation, str):
        raise ValueError("no job of type sum")
    key = json.dumps([job["effect_key"]] if "effect_key" in job else ["sum", operation])
    result = sum(numbers) if all(type(n) is int for n in numbers) else math.fsum(numbers)
    return operation, key, json.dumps(numbers), int(result) if result == int(result) else result

def settle(database, data):
    """Outcome, result, detail, operation id. Nothing is looked up first: the index decides."""
    try:
        operation, key, payload, result = read_job(data)
        if not -(2**63) <= result < 2**63:
            return FAILED, None, "overflow", operation
    except Exception as error:  # whatever the bytes are, only this delivery is refused
        return INVALID, None, f"{type(error).__name__}: {error}"[:200], None
    try:
        database.execute("INSERT INTO effects VALUES (?, ?, ?, ?)", (key, operation, payload, msgpack.packb(result)))
        return STORED, msgpack.packb(result), None, operation
    except sqlite3.IntegrityError:
        held, first = database.execute("SELECT payload, result FROM effects WHERE key = ?", (key,)).fetchone()
    return (DUPLICATE, first, None, operation) if held == payload else (CONFLICT, None, "another payload", operation)

def take_batch(database, deliveries, wait):
    """One transaction a batch, committed before anything is answered."""
    deliveries = [(sequence, tag, data) for sequence, tag, _, _, data in deliveries]
    database.execute("BEGIN IMMEDIATE")
    verdicts = [settle(database, data) if tag == tag_of(data) else (BUSY, None, "tag_mismatch", None) for _, tag, data in deliveries]
    database.execute("COMMIT")
    for operation in [operation for outcome, _, _, operation in verdicts if wait and outcome == STORED]:
        print("committed", operation, flush=True)  # the row is there and the reply is not: the worst moment to be killed
        sys.stdin.readline()
    return [[sequence, tag, *verdict[:3]] for (sequence, tag, _), verdict in zip(deliveries, verdicts)]

def answer(message, boot, database, wait):
    """Whom to answer what; a bare job has no sender."""
    if isinstance(message, dict):
        data = msgpack.packb(message)
        message = [1, b"", [[0, tag_of(data), 1, 0, data]]]
    version, sender, *deliveries = message
    if not isinstance(sender, bytes):
        raise TypeError("no sender")
    if version != 1:
        return sender, [1, "unsupported", [1]]
    if not deliveries:
        return sender, [1, "greeting", boot, "fsync", [1], {"message_bytes_max": 1 << 20, "deliveries_per_message_max": 4096}]
    return sender, [1, "replies", boot, "fsync", take_batch(database, deliveries[0], wait)]

def serve(database, jobs, replies, wait):
    boot, routes = os.urandom(16), {}
    while True:
        for socket in zmq.select([replies, jobs], [], [])[0]:
            *route, data = socket.recv_multipart()
            try:
                sender, reply = answer(msgpack.unpackb(data), boot, database, wait)
            except (ValueError, TypeError) as error:
                print(json.dumps({"event": "message.malformed", "cause": str(error)}), file=sys.stderr, flush=True)
                continue
            routes.update({sender: route[0]} if route else {})  # only the replies socket knows the way back
            if sender in routes:  # otherwise its next delivery asks again
                replies.send_multipart([routes[sender], msgpack.packb(reply)])

def open_database(directory, guarded):
    os.makedirs(directory, exist_ok=True)
    database = sqlite3.connect(f"{directory}/effects.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")  # COMMIT returns once it is on the disk
    database.execute("CREATE TABLE IF NOT EXISTS effects (key, operation_id, payload, result)")
    database.execute("CREATE UNIQUE INDEX IF NOT EXISTS one_effect ON effects (key)" if guarded else "DROP INDEX IF EXISTS one_effect")
    return database

def count(directory):
    database = sqlite3.connect(f"file:{directory}/effects.sqlite?mode=ro", uri=True)
    results, keys = database.execute("SELECT count(*), count(DISTINCT key) FROM effects").fetchone()
    print(json.dumps({"results": results, "keys": keys}))

def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="directory of the database")
    parser.add_argument("--jobs", default="tcp://127.0.0.1:5570", help="endpoint of the jobs socket")
    parser.add_argument("--replies", default="tcp://127.0.0.1:5571", help="endpoint of the replies socket")
    parser.add_argument("--without-constraint", action="store_true", help="drop the index: the control, which must fail")
    parser.add_argument("--wait-after-commit", action="store_true", help="print `committed ID`, then wait for a line on stdin")
    parser.add_argument("--count", action="store_true", help="print how many effects there are, and for how many keys")
    options = parser.parse_args()
    if options.count:
        return count(options.data)
    database = open_database(options.data, not options.without_constraint)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    jobs, replies = zmq.Context.instance().socket(zmq.PULL), zmq.Context.instance().socket(zmq.ROUTER)
    jobs.bind(options.jobs)
    replies.bind(options.replies)
    print(json.dumps({"event": "ready", "jobs": jobs.last_endpoint.decode(), "replies": replies.last_endpoint.decode()}), flush=True)
    serve(database, jobs, replies, options.wait_after_commit)

if __name__ == "__main__":
    main()

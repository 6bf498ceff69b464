"""The targets, as data, and what a run reached of each."""
import dataclasses

import choice
from choice import APPEND_ONE, LARGEST, LIMITS, ONCED, OPEN_LOOP, PEERS, onced_at, peers_at

RATE = "deliveries_per_second"


@dataclasses.dataclass(frozen=True)
class Figure:
    words: str
    wanted: dict
    field: str = RATE
    unit: str = "/s"
    best_of: tuple = ()  # of the rows grouped by these, the group with the highest median
    shows: tuple = ()  # fields that say which rows these are


@dataclasses.dataclass(frozen=True)
class Target:
    name: str
    sense: str  # "≥" or "≤"
    bound: float
    numerator: Figure
    denominator: Figure | None = None  # None: the numerator is by itself a ratio
    per_cent: bool = False


def best_peer(wanted, words="the best peer"):
    return Figure(words, wanted, best_of=("peer",), shows=("peer", "batch", "connections"))


def limit(name, words, share, **more):
    return Figure(words, {**LIMITS, "limit": name, "share": share}, best_of=("threads",), shows=("threads",), **more)


def onced(share, wanted=None):
    wanted = wanted or ONCED
    return Figure("onced", {**wanted, "share": share}, best_of=("per_message",), shows=("per_message",))


def scale(measure, field, unit, words, size=LARGEST):
    return Figure(words, {"bench": "scale", "measure": measure, "size": size}, field, unit, shows=("size",))


def _shares(name, sense, bound, make):
    return [Target(f"{name}, share {share:g}", sense, bound, *make(share)) for share in (0, 0.5, 0.9, 0.99, 1)]


FED, QUEUE = {"has_queue": False}, {"has_queue": True}
P99_APPEND = Figure("p99 of one append and fdatasync", APPEND_ONE, "batch_p99_us", "µs")
CPU = ("cpu_us_per_delivery", "µs")
READS = ("block_reads_per_delivery", "")

TARGETS = [
    Target("share 0.99, against the best peer", "≥", 3, onced(0.99), best_peer({**PEERS, "share": 0.99})),
    Target("share 0.99, against the bare pipe", "≥", 0.15, onced(0.99), limit("pipe", "the bare pipe", 0.99), per_cent=True),
    Target("share 0.9, against the best peer", "≥", 2, onced(0.9), best_peer({**PEERS, "share": 0.9})),
    Target("share 0, against the best peer that has a queue", "≥", 3, onced(0),
           best_peer({**PEERS, **QUEUE, "share": 0}, "the best queue")),
    Target("share 0, against the best client-fed peer", "≥", 1, onced(0),
           best_peer({**PEERS, **FED, "share": 0}, "the best client-fed peer")),
    Target("share 0, commit path against the unguarded WriteBatch", "≥", 0.75, limit("guard", "the commit path", 0),
           limit("write-batch", "WriteBatch", 0), per_cent=True),
    Target("share 0, end to end against the commit path alone", "≥", 0.70, onced(0),
           limit("guard-parsed", "the commit path with parsing", 0), per_cent=True),
    *_shares("100 in flight, against the best client-fed peer", "≥", 1.5, lambda share: (
        onced(share, onced_at(100)), best_peer({**peers_at(100), **FED, "share": share}, "the best client-fed peer"))),
    Target("one in flight, new jobs, against the best peer", "≥", 1, onced(0, onced_at(1)), best_peer({**peers_at(1), "share": 0})),
    Target("one in flight, new jobs, against one append and fdatasync a job", "≥", 0.65, onced(0, onced_at(1)),
           Figure("one append and fdatasync a job", APPEND_ONE), per_cent=True),
    Target("new jobs at half load, open loop, p99", "≤", 4,
           Figure("p99 of onced", {**OPEN_LOOP, "load": 0.5}, "acknowledgement_p99_us", "µs"), P99_APPEND),
    Target("CPU of a hot duplicate at 50 M keys against 1 M", "≤", 1.5, scale("hot", *CPU, "onced", 50_000_000),
           scale("hot", *CPU, "onced", 1_000_000)),
    Target("block reads a delivery, absent key", "≤", 0.02, scale("absent", *READS, "block reads a delivery")),
    Target("block reads a delivery, cold duplicate", "≤", 1.1, scale("cold", *READS, "block reads a delivery")),
    Target("open after kill -9 with a full memtable, against a bare open", "≤", 1.5,
           scale("open_after_kill", "store_open_ms", "ms", "onced"), scale("open_after_kill", "bare_open_ms", "ms", "bare open")),
]


def _measure(figure, rows):
    """As JSON, and its spread; (None, None) where there are no rows."""
    found, spread = choice.best(choice.where(rows, figure.wanted), figure.field, figure.best_of)
    if spread is None:
        return None, None
    shown = {field: found[0][field] for field in figure.shows if field in found[0]}
    return {"words": figure.words, "of": shown, "field": figure.field, "unit": figure.unit, **spread.as_json()}, spread


def _verdict(target, value):
    reached = value >= target.bound if target.sense == "≥" else value <= target.bound
    return "reached" if reached else "not reached"


def evaluate(rows, targets=None):
    """One result a target, in order, as JSON. Ratios are of medians; the range is that of the ratios within the rounds."""
    # The grid is one more run of the same cells, at another time.
    rows = [row for row in rows if row.get("part") != "grid"]
    results = []
    for target in TARGETS if targets is None else targets:
        result = {"target": target.name, "sense": target.sense, "bound": target.bound, "per_cent": target.per_cent,
                  "verdict": "not measured", "value": None, "least": None, "most": None}
        result["numerator"], above = _measure(target.numerator, rows)
        result["denominator"], below = _measure(target.denominator, rows) if target.denominator else (None, None)
        if above is not None and (below is not None or target.denominator is None):
            ratios = above.over(below) if below else above
            result["value"] = above.median / below.median if below else above.median
            if ratios.by_round:
                result["least"], result["most"] = ratios.least, ratios.most
            result["verdict"] = _verdict(target, result["value"])
        results.append(result)
    return results

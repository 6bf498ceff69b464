"""Rows of the benchmarks: JSON objects, one a line, each one run whose counts were exact. What is anything else is refused."""
import json
import math

TRAFFIC = ("share", "deliveries", "distinct", "repeat", "seed", "deliveries_per_second")
REQUIRED = {
    "machine": ("date",),
    "throughput": TRAFFIC + ("per_message", "durability", "workers", "in_flight", "mode", "worker_cpu_us_per_delivery"),
    "limits": TRAFFIC + ("limit", "batch", "threads"),
    "peers": TRAFFIC + ("peer", "has_queue", "in_flight", "in_flight_limit", "client_cpu_us_per_delivery"),
    "scale": ("measure", "size", "keys", "seed"),
    "micro": ("name", "cpu_ns"),
}
# Of these a run has one value: rows that differ in one are of two runs.
OF_ONE_BUILD = ("onced", "build_type", "rocksdb", "rocksdb_asserts", "cores")


class Refused(Exception):
    """These rows are not those of one good run."""


def _no_number(name):
    raise ValueError(f"{name} is no number")


def _check_counts(row):
    deliveries, conflicts = row["deliveries"], row.get("conflicts", 0)
    wanted = (deliveries - conflicts) * (1 - row["share"])
    if not 0 <= row["distinct"] <= deliveries or abs(row["distinct"] - wanted) > 1:
        raise ValueError(f"{row['distinct']} distinct of {deliveries} deliveries is not share {row['share']}")
    if not row["deliveries_per_second"] > 0:
        raise ValueError("it has no rate")


def _check(row):
    if not isinstance(row, dict) or row.get("bench") not in REQUIRED:
        raise ValueError("it is of no benchmark")
    missing = [field for field in REQUIRED[row["bench"]] if field not in row]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    if row.get("void", False):
        raise ValueError("its run is void")
    if any(isinstance(value, float) and not math.isfinite(value) for value in row.values()):
        raise ValueError("a figure is infinite")
    if "deliveries_per_second" in REQUIRED[row["bench"]]:
        _check_counts(row)


def _check_one_build(rows):
    for field in OF_ONE_BUILD:
        values = {json.dumps(row[field]) for row in rows if field in row}
        if len(values) > 1:
            raise Refused(f"these rows are not of one run: {field} is {' and '.join(sorted(values))}")


def read(lines):
    """The rows of these lines, in order. Raises Refused, naming the line."""
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line, parse_constant=_no_number)
            _check(row)
        except (TypeError, ValueError) as error:
            raise Refused(f"line {number}: {error}") from error
        rows.append(row)
    if not rows:
        raise Refused("there are no rows")
    _check_one_build(rows)
    return rows


def round_of(row):
    """Rows of one round were measured close together, so that ratios are taken within it."""
    return row.get("round", row.get("repeat", 1))

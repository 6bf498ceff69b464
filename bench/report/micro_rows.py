"""Google Benchmark's JSON on stdin, as rows on stdout."""
import json
import sys


def rows_of(document):
    to_ns = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    for run in document["benchmarks"]:
        row = {"bench": "micro", "name": run["name"], "void": bool(run.get("error_occurred", False))}
        if not row["void"]:
            row["cpu_ns"] = run["cpu_time"] * to_ns[run["time_unit"]]
            row["real_ns"] = run["real_time"] * to_ns[run["time_unit"]]
            row["items_per_second"] = run.get("items_per_second")
        yield row


if __name__ == "__main__":
    for one in rows_of(json.load(sys.stdin)):
        print(json.dumps(one))

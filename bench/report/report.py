#!/usr/bin/env python3
"""Reads the rows of one run of the benchmarks and writes what people read of them: targets, tables, plots, results.json."""
import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # this folder is a source folder

import cells  # noqa: E402
import plots  # noqa: E402
import rows as row_file  # noqa: E402
import setting  # noqa: E402
import tables  # noqa: E402
import targets  # noqa: E402

EXIT_REFUSED = 1
EXIT_USAGE = 64


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def parse(arguments):
    parser = Parser(description="Targets, tables, plots and results.json of one run of the benchmarks.",
                    epilog="Example: bench/report/report.py build/benchmark/rows.jsonl --out build/benchmark",
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", metavar="ROWS.jsonl", type=pathlib.Path, help="as tools/benchmark, or the programs, write them")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write to")
    parser.add_argument("--without-plots", action="store_true", help="needs no gnuplot")
    return parser.parse_args(arguments)


def write(out, rows):
    """Everything but the plots. Returns the results of the targets."""
    results = targets.evaluate(rows)
    document = {"setting": setting.describe(rows), "targets": results, "cells": cells.reduce(rows), "rows": rows}
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "targets.md").write_text(tables.targets_document(results), encoding="utf-8")
    (out / "tables.md").write_text(tables.document(rows), encoding="utf-8")
    return results


def main(arguments):
    options = parse(arguments)
    try:
        with options.rows.open(encoding="utf-8") as lines:
            rows = row_file.read(lines)
        results = write(options.out, rows)
        drawn = [] if options.without_plots else plots.draw(rows, options.out)
    except (OSError, UnicodeDecodeError, row_file.Refused, plots.Failed) as error:
        print(f"report: {options.rows}: {error}", file=sys.stderr)
        return EXIT_REFUSED
    print(tables.targets_text(results), end="")
    counts = {verdict: sum(result["verdict"] == verdict for result in results) for verdict in ("reached", "not reached", "not measured")}
    print(f"{len(rows)} rows, {len(results)} targets: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    print(f"written to {options.out}: results.json, targets.md, tables.md{''.join(f', {name}' for name in drawn)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

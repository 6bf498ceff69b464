#!/usr/bin/env python3
"""Verifies that the report computes targets exactly from rows that are checked in, leaves out what was not measured, and
refuses rows that are not those of one good run. What the plots look like it does not verify, only that they are drawn."""
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import choice  # noqa: E402
import micro_rows  # noqa: E402
import rows as row_file  # noqa: E402
import setting  # noqa: E402
import tables  # noqa: E402
import targets  # noqa: E402

LINES = (HERE / "test_rows.jsonl").read_text(encoding="utf-8").splitlines()
ROWS = row_file.read(LINES)
RESULTS = {result["target"]: result for result in targets.evaluate(ROWS)}


def report(lines, *options):
    """Runs the program on these lines: its exit status, what it said, and the files that it wrote by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "rows.jsonl")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, HERE / "report.py", path, "--out", pathlib.Path(folder, "out"), *options]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
        written = {file.name: file.read_text(encoding="utf-8") for file in pathlib.Path(folder).glob("out/*")}
    return run.returncode, run.stdout, written


class Targets(unittest.TestCase):
    def assert_result(self, name, value, least, most, verdict):
        result = RESULTS[name]
        self.assertAlmostEqual(result["value"], value, places=12)
        self.assertAlmostEqual(result["least"], least, places=12)
        self.assertAlmostEqual(result["most"], most, places=12)
        self.assertEqual(result["verdict"], verdict)

    def test_a_ratio_is_of_medians_and_its_range_is_over_the_rounds(self):
        self.assert_result("share 0.99, against the best peer", 3, 1.5, 5.1, "reached")
        self.assert_result("share 0.9, against the best peer", 200 / 150, 100 / 150, 340 / 150, "not reached")

    def test_a_bound_that_is_just_reached_is_reached(self):
        self.assert_result("share 0, commit path against the unguarded WriteBatch", 0.75, 0.75, 0.75, "reached")
        self.assert_result("100 in flight, against the best client-fed peer, share 0", 1.5, 1.5, 1.5, "reached")

    def test_queues_and_client_fed_peers_are_told_apart(self):
        self.assert_result("share 0, against the best peer that has a queue", 5, 2.5, 8.5, "reached")
        self.assert_result("share 0, against the best client-fed peer", 1.25, 0.625, 2.125, "reached")

    def test_the_best_of_threads_and_of_message_sizes_is_taken(self):
        path = RESULTS["share 0, commit path against the unguarded WriteBatch"]
        self.assertEqual((path["numerator"]["of"], path["denominator"]["of"]), ({"threads": 2}, {"threads": 1}))
        self.assertEqual(RESULTS["100 in flight, against the best client-fed peer, share 0"]["numerator"]["of"], {"per_message": 50})

    def test_at_most_is_the_other_way_round(self):
        self.assert_result("new jobs at half load, open loop, p99", 3.2, 3.2, 3.2, "reached")
        self.assert_result("block reads a delivery, absent key", 0.001, 0.001, 0.001, "reached")
        self.assert_result("open after kill -9 with a full memtable, against a bare open", 1.25, 1.25, 1.25, "reached")
        target = next(target for target in targets.TARGETS if "p99" in target.name)
        stricter = targets.evaluate(ROWS, [dataclasses.replace(target, bound=3.1)])[0]
        self.assertEqual(stricter["verdict"], "not reached")

    def test_without_its_rows_a_target_is_not_measured(self):
        for name in ("CPU of a hot duplicate at 50 M keys against 1 M", "100 in flight, against the best client-fed peer, share 0.5"):
            self.assertEqual((RESULTS[name]["verdict"], RESULTS[name]["value"]), ("not measured", None))

    def test_each_target_is_evaluated_once(self):
        self.assertEqual(len(RESULTS), len(targets.TARGETS))

    def test_rounds_that_only_one_side_has_are_not_paired(self):
        one, other = choice.Spread({1: 10, 2: 30}), choice.Spread({2: 10, 3: 1})
        self.assertEqual(one.over(other).by_round, {2: 3})


class Documents(unittest.TestCase):
    def test_the_program_writes_all_of_them_and_exits_0(self):
        plots = shutil.which("gnuplot") is not None
        status, said, written = report(LINES, *([] if plots else ["--without-plots"]))
        self.assertEqual(status, 0, said)
        names = {"results.json", "targets.md", "tables.md"}
        drawn = {"throughput.svg", "cpu.svg", "latency.svg", "keys-cpu.svg", "keys-reads.svg"}
        self.assertEqual(set(written), names | drawn if plots else names)
        self.assertTrue(all("</svg>" in written[name] for name in drawn if plots))
        self.assertIn("93 rows, 19 targets: 12 reached, 2 not reached, 5 not measured", said)

    def test_results_hold_setting_targets_cells_and_rows(self):
        _, _, written = report(LINES, "--without-plots")
        results = json.loads(written["results.json"])
        self.assertEqual(list(results), ["setting", "targets", "cells", "rows"])
        self.assertEqual(results["rows"], [json.loads(line) for line in LINES])
        cell = next(cell for cell in results["cells"] if cell.get("share") == 0.99 and cell["bench"] == "throughput")
        self.assertEqual(cell["figures"]["deliveries_per_second"], {"minimum": 450000, "median": 900000, "maximum": 1530000})
        self.assertEqual(cell["runs"], 3)

    def test_the_same_rows_give_the_same_bytes(self):
        self.assertEqual(report(LINES, "--without-plots")[2], report(LINES, "--without-plots")[2])

    def test_the_setting_says_what_the_rows_say(self):
        said = setting.describe(ROWS)
        self.assertEqual(said["peers"], ["postgresql 1", "redis 1", "sqlite 1"])
        self.assertEqual((said["rocksdb"], said["rocksdb_asserts"], said["seeds"], said["rounds"]), ("7.8.3", None, [1], 3))

    def test_the_grid_is_a_table_of_its_own(self):
        text = tables.document(ROWS)
        self.assertIn("| onced | 100,000 (50,000 to 170,000) |", text)
        self.assertIn("| fsync, 2 workers, 256 a message | 999,000 |", text)

    def test_numbers_keep_their_digits(self):
        self.assertEqual([tables.number(value) for value in (None, 0, 0.00123, 0.456, 12.34, 1234567.8)],
                         ["–", "0", "0.0012", "0.46", "12.3", "1,234,568"])


class Refusals(unittest.TestCase):
    def assert_refused(self, line, *words):
        status, said, written = report(LINES[:3] + [line], "--without-plots")
        self.assertEqual((status, written), (1, {}))
        for word in words:
            self.assertIn(word, said)

    def changed(self, **fields):
        return json.dumps({**json.loads(LINES[1]), **fields})

    def test_garbled_rows_are_refused_by_line(self):
        self.assert_refused(LINES[1][:-20], "line 4")
        self.assert_refused("[]", "line 4", "no benchmark")
        self.assert_refused(self.changed(bench="other"), "line 4", "no benchmark")
        self.assert_refused(self.changed(share="x"), "line 4")

    def test_a_void_run_is_refused(self):
        self.assert_refused(self.changed(void=True), "line 4", "void")

    def test_counts_that_are_not_those_of_the_share_are_refused(self):
        self.assert_refused(self.changed(distinct=998), "line 4", "998 distinct")

    def test_figures_that_cannot_be_are_refused(self):
        self.assert_refused(self.changed(deliveries_per_second=0), "line 4", "rate")
        self.assert_refused(self.changed(worker_cpu_us_per_delivery=float("nan")), "line 4", "NaN")
        self.assert_refused(self.changed(worker_cpu_us_per_delivery=float("inf")), "line 4", "Infinity")

    def test_a_row_without_a_field_is_refused(self):
        row = json.loads(LINES[1])
        del row["workers"]
        self.assert_refused(json.dumps(row), "line 4", "workers")

    def test_rows_of_two_builds_are_refused(self):
        self.assert_refused(self.changed(rocksdb="9.0.0"), "7.8.3", "9.0.0")

    def test_no_rows_are_refused(self):
        self.assertRaises(row_file.Refused, row_file.read, [])

    def test_wrong_usage_exits_with_64(self):
        self.assertEqual(report(LINES, "--no-such-option")[0], 64)


class MicroRows(unittest.TestCase):
    def test_times_are_in_nanoseconds_and_a_failed_benchmark_is_void(self):
        made = list(micro_rows.rows_of({"benchmarks": [
            {"name": "a", "cpu_time": 2.0, "real_time": 3.0, "time_unit": "us", "items_per_second": 5.0},
            {"name": "b", "error_occurred": True}]}))
        self.assertEqual((made[0]["cpu_ns"], made[0]["real_ns"], made[0]["void"]), (2000.0, 3000.0, False))
        self.assertTrue(made[1]["void"])
        self.assertRaises(row_file.Refused, row_file.read, [json.dumps(made[1])])


if __name__ == "__main__":
    unittest.main()

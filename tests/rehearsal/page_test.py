#!/usr/bin/python3
"""Verifies the page of a record in headless Chromium: what it says, its filter, that it asks for nothing, that no text of a record
becomes markup, and that it fits its window. Does not verify: how it looks, nor that the record is true."""
import copy
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # into the source tree
import browser  # noqa: E402

SAMPLE = json.loads((pathlib.Path(__file__).parent / "sample_record.json").read_text())
RENDER = os.environ.get("RENDER_PAGE", "build/release/render_page")
HOSTILE = "<img src=x onerror=window.hostile=1><!--<script></script><script>window.hostile=1</script>\"'&amp;"
VISIBLE_ROWS = "document.querySelectorAll('#evidence-table tbody:not([hidden])').length"


def render(record):
    return subprocess.run([RENDER], input=json.dumps(record).encode(), stdout=subprocess.PIPE, check=True, timeout=browser.PATIENCE_S).stdout.decode()


def deliveries(record):
    return [row for scenario in record["observed"]["scenarios"] for row in scenario["evidence"]]


def made_hostile(value, name=""):
    """Every text a stranger may have written; times, and the words that the form fixes, stay."""
    if isinstance(value, dict):
        return {key: made_hostile(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [made_hostile(inner, name) for inner in value]
    fixed = ("at", "what", "status", "verdict", "kind", "review_by", "format")
    return HOSTILE + value if isinstance(value, str) and name not in fixed and not name.endswith("_at") else value


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.directory = tempfile.TemporaryDirectory(prefix="onced-page-")
        cls.addClassCleanup(cls.directory.cleanup)

    def open(self, record, width=1280):
        path = pathlib.Path(self.directory.name) / "record.html"
        path.write_text(render(record))
        self.browser.open(path, width)
        self.assertEqual([], self.browser.console())
        self.assertEqual([f"file://{path}"], self.browser.requests())

    def value(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def choose(self, name, value):
        self.value(f"""(() => {{ const field = document.querySelector('form').elements[{json.dumps(name)}]; field.value = {json.dumps(value)};
                       field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()""")

    def test_the_verdict_comes_first_with_expected_beside_seen(self):
        self.open(SAMPLE)
        self.assertTrue(self.text("#verdict").startswith("Passed. 12 of 12 scenarios"))
        rows = self.value("[...document.querySelectorAll('#scenarios tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))")
        self.assertEqual(len(SAMPLE["facts"]["scenarios"]), len(rows))
        self.assertIn("duplicate publish", rows[1][0])
        self.assertEqual(["4\u00a0effects · 4\u00a0stored · 4\u00a0duplicate"] * 2 + ["✓ as expected"], rows[1][1:])

    def test_each_control_stands_beside_a_guarded_scenario(self):
        self.open(SAMPLE)
        sides = self.value("[...document.querySelectorAll('.sides')].map(pair => [...pair.querySelectorAll('.big')].map(side => side.innerText))")
        self.assertEqual([["No double effect", "At least 1\u00a0double effect"]] * 2, sides)

    def test_each_kill_has_a_timeline_that_names_its_events_in_order(self):
        self.open(SAMPLE)
        labels = self.value("[...document.querySelectorAll('svg')].map(drawing => drawing.getAttribute('aria-label'))")
        timelines = [scenario for scenario in SAMPLE["observed"]["scenarios"] if scenario["timeline"]]
        self.assertEqual([scenario["name"] for scenario in timelines], [label.split(":")[0] for label in labels])
        self.assertIn("kill after commit: start, start, publish, consume, commit, kill, restart, redelivery, consume, acknowledgement", labels)

    def test_the_filter_leaves_the_rows_that_were_asked_for(self):
        self.open(SAMPLE)
        rows = deliveries(SAMPLE)
        self.assertEqual(len(rows), self.value(VISIBLE_ROWS))
        self.choose("outcome", "duplicate")
        duplicates = [row for row in rows if row["outcome"] == "duplicate"]
        self.assertEqual(len(duplicates), self.value(VISIBLE_ROWS))
        self.choose("scenario", "duplicate publish")
        self.assertEqual(4, self.value(VISIBLE_ROWS))
        self.choose("words", "order-1003 DUPLICATE")
        self.assertEqual(1, self.value(VISIBLE_ROWS))
        self.assertEqual(f"1 of {len(rows)}\u00a0deliveries", self.text("#shown"))
        self.choose("words", "no such words")
        self.assertEqual(0, self.value(VISIBLE_ROWS))

    def test_a_scenario_leads_to_its_deliveries_and_a_button_back_to_all(self):
        self.open(SAMPLE)
        settled = "new Promise(done => setTimeout(() => setTimeout(() => done(%s))))" % VISIBLE_ROWS
        self.value("document.querySelectorAll('#scenarios a')[2].click()")
        chosen = [row for row in deliveries(SAMPLE) if row["scenario"] == "duplicates at once"]
        self.assertEqual(len(chosen), self.value(settled))
        self.value("document.querySelector('button[type=reset]').click()")
        self.assertEqual(len(deliveries(SAMPLE)), self.value(settled))

    def test_a_scenario_that_differs_and_a_review_that_is_past_are_said(self):
        record = copy.deepcopy(SAMPLE)
        record["facts"]["verdict"] = "failed"
        record["facts"]["counts"].update(passed=11, failed=1)
        record["facts"]["scenarios"][1]["status"] = "failed"
        record["facts"]["scenarios"][1]["seen"]["effects"] = 5
        record["facts"]["plan"]["review_by"] = "2020-01-31"
        self.open(record)
        self.assertIn("Failed. 11 of 12 scenarios", self.text("#verdict"))
        self.assertIn("duplicate publish", self.text("#verdict .accent + .accent"))
        self.assertEqual("5\u00a0effects", self.text("#scenarios td .accent"))
        self.assertIn("2020-01-31", self.text("#overdue"))

    def test_a_review_that_is_not_yet_due_is_not_called_past(self):
        record = copy.deepcopy(SAMPLE)
        record["facts"]["plan"]["review_by"] = (datetime.date.today() + datetime.timedelta(days=2)).isoformat()
        self.open(record)
        self.assertIsNone(self.value("document.getElementById('overdue')"))

    def test_no_text_of_a_record_becomes_markup(self):
        self.open(made_hostile(SAMPLE))
        self.assertEqual("undefined", self.value("typeof window.hostile"))
        self.assertEqual([0, 2], self.value("[document.images.length, document.scripts.length]"))
        self.assertIn(HOSTILE.lower(), self.text("h1").lower())
        self.assertIn(HOSTILE, self.text("#evidence-table td.log"))
        self.assertIn(HOSTILE, self.text("figcaption"))

    def test_the_record_in_the_page_is_the_record(self):
        for record in (SAMPLE, made_hostile(SAMPLE)):
            data = render(record).split('id="record">', 1)[1].split("</script>", 1)[0]
            self.assertEqual(record, json.loads(data))

    def test_a_worker_of_someone_else_without_events_is_drawn(self):
        record = copy.deepcopy(SAMPLE)
        record["facts"].update(constraint=None, failing_insert=None)
        record["facts"]["worker"].update(kind="command", command=["python3", "worker.py"], count=["python3", "worker.py", "--count"], kill_when="committed")
        for scenario in record["observed"]["scenarios"]:
            for row in scenario["evidence"]:
                row.update(consume_at=None, commit_at=None, rows_written=None, outcome=None, log=None)
        self.open(record)
        self.assertIn("python3 worker.py --count", self.text("#setting"))

    def test_a_rehearsal_in_which_nothing_ran_is_drawn(self):
        record = copy.deepcopy(SAMPLE)
        for fact, seen in zip(record["facts"]["scenarios"], record["observed"]["scenarios"]):
            fact.update(status="skipped", seen=None, effects_before=None, effects_after=None, outcomes=[])
            seen.update(started_at=None, ended_at=None, endpoints=None, processes=[], queries=[], timeline=[], evidence=[])
        record["facts"].update(verdict="failed", counts={"scenarios": 13, "passed": 0, "failed": 0, "skipped": 13})
        self.open(record)
        self.assertIn("Failed. 0 of 0 scenarios", self.text("#verdict"))

    def test_it_fits_a_wide_window_and_a_narrow_one(self):
        for record in (SAMPLE, made_hostile(SAMPLE)):
            for width in (1280, 400):
                self.open(record, width)
                self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)


if __name__ == "__main__":
    if not browser.find_chromium():
        print("skipped: chromium is not installed")
        sys.exit(77)
    unittest.main()

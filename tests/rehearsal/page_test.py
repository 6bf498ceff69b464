#!/usr/bin/python3
"""Verifies the page of a record in headless Chromium: what it says, its filter, that it asks for nothing, that no text of a record
becomes markup, and that it fits its window. Does not verify: how it looks, nor that the record is true."""
import copy
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # into the source tree
import browser  # noqa: E402

SAMPLE = json.loads((pathlib.Path(__file__).parent / "sample_record.json").read_text())
RENDER = os.environ.get("RENDER_PAGE", "build/release/render_page")
HOSTILE = "<img src=x onerror=window.hostile=1><!--<script></script><script>window.hostile=1</script>\"'&amp;"
# Drawn texts that reach out of their drawing.
CUT_TEXTS = """[...document.querySelectorAll('svg text')].filter(text => text.getClientRects().length).filter(text => {
  const box = text.getBBox(), frame = text.ownerSVGElement.viewBox.baseVal;
  return box.x < 0 || box.y < 0 || box.x + box.width > frame.width || box.y + box.height > frame.height; }).map(text => text.textContent)"""
VISIBLE_ROWS = "document.querySelectorAll('.deliveries tbody:not([hidden])').length"
ROWS_AT_FIRST = 8


def render(record):
    return subprocess.run([RENDER], input=json.dumps(record).encode(), stdout=subprocess.PIPE, check=True, timeout=browser.PATIENCE_S).stdout.decode()


def deliveries(record):
    return [row for scenario in record["observed"]["scenarios"] for row in scenario["evidence"]]


def place_of(name):
    return [scenario["name"] for scenario in SAMPLE["facts"]["scenarios"]].index(name)


def with_power_loss():
    """The sample, in which the power loss ran: a timeline of it, with more words of a reason than there is room for."""
    record = copy.deepcopy(SAMPLE)
    steps = [("start", None, "worker"), ("start", None, "sender"), ("publish", 1, None), ("consume", 1, None),
             ("power loss", None, "the file system was shut down without its unsynced bytes, in " + "/a/long/directory" * 5),
             ("kill", None, "worker, killed by signal 9"), ("restart", None, "worker"), ("redelivery", 12, None), ("consume", 12, None),
             ("commit", 12, None), ("acknowledgement", 12, "stored"), ("end", None, "worker, exit 0")]
    record["observed"]["scenarios"][place_of("power loss")]["timeline"] = [
        {"at": "2027-01-01T09:00:27.000000Z", "at_us": 1798794027000000 + 20_000 * at, "what": what, "operation_id": "order-1001" if attempt else None,
         "attempt": attempt, "detail": detail} for at, (what, attempt, detail) in enumerate(steps)]
    return record


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

    def open(self, record, width=1280, unfolded=True):
        path = pathlib.Path(self.directory.name) / "record.html"
        path.write_text(render(record))
        self.browser.open(path, width)
        self.assertEqual([], self.browser.console())
        self.assertEqual([f"file://{path}"], self.browser.requests())
        if unfolded:
            self.value("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")

    def value(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def choose(self, name, value):
        self.value(f"""(() => {{ const field = document.querySelector('form').elements[{json.dumps(name)}]; field.value = {json.dumps(value)};
                       field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()""")

    def test_the_verdict_comes_first_with_expected_beside_seen(self):
        self.open(SAMPLE)
        self.assertEqual("Passed: a sum is booked", self.text("h1"))
        self.assertTrue(self.text("#verdict").startswith("13 of 13 scenarios came out as was written before the run."))
        rows = self.value("[...document.querySelectorAll('#scenarios tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))")
        self.assertEqual(len(SAMPLE["facts"]["scenarios"]), len(rows))
        self.assertIn("duplicate publish", rows[1][0])
        self.assertEqual(["4\u00a0effects\u00a0· 4\u00a0stored\u00a0· 4\u00a0duplicate"] * 2 + ["✓ as expected"], rows[1][1:])

    def test_each_control_stands_beside_a_guarded_scenario(self):
        self.open(SAMPLE)
        sides = self.value("[...document.querySelectorAll('.pair')].map(pair => [...pair.querySelectorAll('.big')].map(side => side.innerText))")
        self.assertEqual([["No double effect", "At least 1\u00a0double effect"]] * 2, sides)

    def test_each_kill_has_a_timeline_that_names_its_events_in_order(self):
        self.open(SAMPLE)
        labels = self.value("[...document.querySelectorAll('.drawings > figure svg')].map(drawing => drawing.getAttribute('aria-label'))")
        timelines = [scenario for scenario in SAMPLE["observed"]["scenarios"] if scenario["timeline"]]
        self.assertEqual([scenario["name"] for scenario in timelines], [label.split(":")[0] for label in labels])
        self.assertIn("kill after commit: start, start, publish, consume, commit, kill, restart, redelivery, consume, acknowledgement", labels)

    def drawing(self, label):
        """The shapes of a timeline, by class, each with its attributes."""
        return self.value(f"""(() => {{ const shapes = {{}}, drawn = [...document.querySelectorAll('.drawings > figure svg')].find(svg => svg.getAttribute('aria-label').startsWith({json.dumps(label)}));
          for (const shape of drawn.querySelectorAll('[class]')) (shapes[shape.getAttribute('class')] ||= []).push(
            Object.fromEntries([...shape.attributes].map(({{ name, value }}) => [name, isNaN(value) ? value : Number(value)]).concat([['text', shape.textContent]])));
          return shapes; }})()""")

    def test_a_worker_is_drawn_hollow_from_unavailable_to_available(self):
        self.open(SAMPLE)
        labels = self.value("[...document.querySelectorAll('.drawings > figure svg')].map(drawing => drawing.getAttribute('aria-label'))")
        self.assertIn("store unavailable: start, start, publish, consume, unavailable (No space left on device), redelivery, available, redelivery, consume, "
                      "commit, acknowledgement", labels)
        shapes = self.drawing("store unavailable")
        stop, = [line["y1"] for line in shapes["kill"] if line["y1"] == line["y2"]]
        dots = [dot["cy"] for dot in shapes["dot"]]
        hollow, = shapes["hollow"]
        self.assertEqual(stop, hollow["y"])
        self.assertIn(hollow["y"] + hollow["height"], dots)
        self.assertEqual(["unavailable"], [label["text"] for label in shapes["bad"]])
        self.assertEqual(["No space left on", "device"], [line["text"] for line in shapes["detail"]])

    def test_a_power_loss_cuts_the_lines_of_worker_and_store_until_the_restart(self):
        self.open(with_power_loss())
        shapes = self.drawing("power loss")
        cut, = shapes["cut"]
        worker, store = cut["x1"] + 8, cut["x2"] - 8
        restart = [dot["cy"] for dot in shapes["dot"]][3]
        dead = [(line["x1"], line["y1"], line["y2"]) for line in shapes["down"]]
        self.assertIn((store, cut["y1"], restart), dead)
        self.assertIn((worker, cut["y1"], restart), dead)
        self.assertEqual(["power loss", "kill"], [label["text"] for label in shapes["bad"]])
        self.assertEqual(3, len(shapes["detail"]))
        self.assertTrue(shapes["detail"][2]["text"].endswith("…"))
        self.assertEqual([], self.value(CUT_TEXTS))

    def chart(self, kind, name, width="wide"):
        """The points of a line as its axes say: (ms, jobs)."""
        drawn = self.value(f"""(() => {{ const svg = document.querySelector('.charts svg.{width}');
          return [[...svg.querySelectorAll('path.{kind}.{name}')].map(path => path.getAttribute('d')),
            [...svg.querySelectorAll('text.time')].map(text => ['x', 'y', 'text-anchor'].map(at => text.getAttribute(at)).concat(text.textContent))]; }})()""")
        paths, labels = drawn
        ms = sorted((float(text.replace(",", "")), float(x)) for x, _, anchor, text in labels if anchor == "middle")
        jobs = sorted((float(text.replace(",", "")), float(y) - 4) for _, y, anchor, text in labels if anchor == "end" and text[0].isdigit())
        self.assertIn("jobs", [label[3] for label in labels])
        self.assertIn("ms since the first point", [label[3] for label in labels])

        def read(scale, at):
            (first, begin), (last, end) = scale[0], scale[-1]
            return first + (at - begin) * (last - first) / (end - begin)
        points = [(float(x), float(y)) for x, y in re.findall(r"[MH]([\d.e-]+)(?:,| V)([\d.e-]+)", paths[0])]
        return [(read(ms, x), read(jobs, y)) for x, y in points]

    def test_the_burst_is_drawn_in_steps_that_its_axes_measure(self):
        self.open(SAMPLE)
        backlog = SAMPLE["observed"]["scenarios"][place_of("burst")]["backlog"]
        for width in ("wide", "narrow"):
            for kind, name in (("waiting", "waiting"), ("in-hand", "in_hand")):
                drawn = self.chart("edge", kind, width)
                self.assertEqual(len(backlog), len(drawn))
                for (ms, jobs), point in zip(drawn, backlog):
                    self.assertAlmostEqual((point["at_us"] - backlog[0]["at_us"]) / 1000, ms, 3)
                    self.assertAlmostEqual(point[name], jobs, 3)

    def test_the_peaks_of_the_burst_are_said_in_words(self):
        self.open(SAMPLE)
        words = "Waiting: at most 32\u00a0jobs, after 3.1\u00a0ms. In hand: at most 16\u00a0jobs, after 2.4\u00a0ms. At the end, after 105.6\u00a0ms, none waited."
        self.assertEqual(words, self.text(".charts figure > p"))
        self.assertEqual([f"burst. {words}"] * 2, self.value("[...document.querySelectorAll('.charts svg')].map(svg => svg.getAttribute('aria-label'))"))

    def test_a_backlog_that_did_not_drain_or_never_rose_is_said_and_drawn(self):
        record = copy.deepcopy(SAMPLE)
        burst = record["observed"]["scenarios"][place_of("burst")]
        burst["backlog"] = burst["backlog"][:5]
        self.open(record)
        self.assertTrue(self.text(".charts figure > p").endswith("5\u00a0jobs waited."))
        burst["backlog"] = [{"at_us": 1, "waiting": 0, "in_hand": 0}]
        self.open(record)
        self.assertIn("at most 0\u00a0jobs", self.text(".charts figure > p"))
        self.assertEqual([(0, 0)], self.chart("edge", "waiting"))

    def test_one_chart_of_the_burst_is_shown_and_its_texts_are_whole(self):
        for width, kind in ((1280, "wide"), (400, "narrow")):
            self.open(SAMPLE, width)
            shown = "[...document.querySelectorAll('.charts svg')].filter(svg => svg.getClientRects().length).map(svg => svg.getAttribute('class'))"
            self.assertEqual([kind], self.value(shown))
            self.assertEqual([], self.value(CUT_TEXTS))

    def test_without_a_backlog_there_is_no_burst(self):
        record = copy.deepcopy(SAMPLE)
        record["observed"]["scenarios"][place_of("burst")]["backlog"] = []
        self.open(record)
        self.assertEqual(0, self.value("document.querySelectorAll('.charts').length"))

    def test_a_skipped_scenario_says_why_and_leads_nowhere(self):
        self.open(SAMPLE)
        row = f"document.querySelectorAll('#scenarios tbody tr')[{place_of('power loss')}]"
        name, *cells = self.value(f"[...{row}.cells].map(cell => cell.innerText)")
        self.assertEqual(["4\u00a0effects\u00a0· 4\u00a0stored", "not run", "skipped"], cells)
        self.assertTrue(name.endswith("A file system that may be shut down needs root, and this account is another."))
        self.assertEqual(0, self.value(f"{row}.querySelectorAll('a').length"))
        self.assertTrue(self.text("#verdict").endswith("1 could not run here: power loss."))

    def test_the_filter_leaves_the_rows_that_were_asked_for(self):
        self.open(SAMPLE)
        rows = deliveries(SAMPLE)
        at_first = sum(min(ROWS_AT_FIRST, len(scenario["evidence"])) for scenario in SAMPLE["observed"]["scenarios"])
        self.assertEqual(at_first, self.value(VISIBLE_ROWS))
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
        self.open(SAMPLE, unfolded=False)
        settled = "new Promise(done => setTimeout(() => setTimeout(() => done(%s))))" % \
            "[...document.querySelectorAll('#evidence details[open]')].map(fold => fold.dataset.name)"
        self.assertEqual([], self.value(settled))
        self.value("document.querySelectorAll('#scenarios a')[2].click()")
        self.assertEqual(["duplicates at once"], self.value(settled))
        self.value("document.querySelector('button[type=reset]').click()")
        self.assertEqual([], self.value(settled))

    def test_the_first_deliveries_of_a_scenario_are_shown_and_the_others_on_demand(self):
        self.open(SAMPLE)
        chosen = [row for row in deliveries(SAMPLE) if row["scenario"] == "duplicates at once"]
        self.choose("scenario", "duplicates at once")
        self.assertEqual(ROWS_AT_FIRST, self.value(VISIBLE_ROWS))
        self.assertEqual(f"{len(chosen)} of {len(deliveries(SAMPLE))}\u00a0deliveries", self.text("#shown"))
        self.value("[...document.querySelectorAll('.inside > button')].find(button => !button.hidden && button.getClientRects().length).click()")
        self.assertEqual(len(chosen), self.value(VISIBLE_ROWS))

    def test_the_killed_delivery_comes_first_with_its_log_and_its_row(self):
        self.open(SAMPLE)
        first = self.text("details[data-name='kill after commit'] .deliveries tbody")
        self.assertIn("killed at worker.after-commit", first)
        self.assertIn("delivery.consumed", first)
        self.assertIn('committed: {"row"', first)

    def test_a_failed_scenario_is_never_said_to_have_no_double_effect(self):
        record = copy.deepcopy(SAMPLE)
        for name in ("kill after commit", "duplicates at once"):
            failed = record["facts"]["scenarios"][place_of(name)]
            failed.update(status="failed", differences=["effects: expected 4, seen 0"])
            failed["seen"].update(effects=0, stored=0, duplicate=0)
        self.open(record)
        sides = self.value("[...document.querySelectorAll('.pair')].map(pair => pair.querySelector('.big').innerText)")
        self.assertEqual(["Failed: effects: expected 4, seen 0"] * 2, sides)
        self.assertNotIn("No double effect", self.text("#guard"))
        self.assertIn("in the 9\u00a0scenarios that passed. 2\u00a0scenarios failed, and count for nothing here.", self.text("#measured"))

    def test_a_double_effect_with_the_guard_is_said_first_of_all(self):
        record = copy.deepcopy(SAMPLE)
        failed = record["facts"]["scenarios"][place_of("kill after commit")]
        failed.update(status="failed", differences=["effects: expected 4, seen 5"])
        failed["seen"]["effects"] = 5
        self.open(record)
        self.assertIn("1\u00a0double effect with the guard.", self.text("#measured"))
        self.assertNotIn("none double", self.text("#measured"))
        self.assertEqual("1\u00a0double effect", self.text("#guard .big"))

    def test_nothing_is_said_of_a_guard_that_no_job_has_met(self):
        record = copy.deepcopy(SAMPLE)
        record["facts"]["scenarios"][place_of("kill after commit")]["seen"]["effects"] = 0
        self.open(record)
        self.assertIn("Nothing is shown", self.text("#guard .big"))

    def test_a_risk_is_told_where_it_came_out_so_and_not_where_the_scenario_failed(self):
        for status, told in (("passed", True), ("failed", False)):
            record = copy.deepcopy(SAMPLE)
            record["facts"]["scenarios"][0].update(status=status, risk="the policy trusts its provider")
            self.open(record)
            row = self.text("#scenarios tbody tr")
            self.assertEqual(told, "the policy trusts its provider" in row, row)
            self.assertIn("✓ as its policy risks" if told else "✗ differs", row)

    def test_a_measure_of_nothing_says_that_it_was_not_measured(self):
        record = copy.deepcopy(SAMPLE)
        record["observed"]["measures"][2].update(value=None, denominator=0)
        self.open(record)
        rows = self.value("[...document.querySelectorAll('#measures tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))")
        self.assertEqual(["not measured: none were counted", "0"], rows[2][1:3])
        self.assertTrue(all(value[0].isdigit() or value.startswith("not measured") for _, value, *_ in rows), rows)

    def test_the_count_that_decides_is_marked_and_comes_first(self):
        record = copy.deepcopy(SAMPLE)
        record["observed"]["scenarios"][0]["queries"] = [
            {"command": "onced count", "before": 0, "after": 4, "decides": False}, {"command": "wc -l effects.jsonl", "before": 0, "after": 5, "decides": True},
            {"command": "ldb scan", "before": None, "after": None, "decides": False}]
        self.open(record)
        rows = self.value("[...document.querySelector('.counts').tBodies[0].rows].map(row => [...row.cells].map(cell => cell.innerText))")
        self.assertEqual([["wc -l effects.jsonl", "0", "5", "this count decides"], ["onced count", "0", "4", "to compare"],
                          ["ldb scan", "not run", "not run", "to compare"]], rows)

    def test_effects_at_a_provider_are_a_table_by_key(self):
        record = copy.deepcopy(SAMPLE)
        record["observed"]["scenarios"][0]["effects"] = [
            {"at": f"2027-01-01T09:00:0{second}.000000Z", "operation_id": name, "key": key, "token": "1f"}
            for second, (name, key) in enumerate((("order-1001", "aa"), ("order-1002", "bb"), ("order-1001", "aa")))]
        self.open(record)
        rows = self.value("[...document.querySelector('.provider').tBodies[0].rows].map(row => [...row.cells].map(cell => cell.innerText))")
        self.assertEqual([["order-1001", "aa", "2"], ["order-1002", "bb", "1"]], [row[:3] for row in rows])
        self.assertEqual("2", self.text(".provider .accent"))

    def test_a_review_is_shown_with_name_and_date_and_decision(self):
        self.open(SAMPLE)
        self.assertIn("Not reviewed yet.", self.text("#decision"))
        self.assertIn("--review", self.text("#decision pre"))
        record = copy.deepcopy(SAMPLE)
        record["reviews"] = [{"by": "Kim", "at": "2027-01-02T10:00:00.000000Z", "decision": "rejected", "note": "Too few jobs.", "sha256": "00"}]
        self.open(record)
        self.assertEqual("Rejected by Kim on 2027-01-02 10:00:00 UTC. Too few jobs.", self.text("#decision .review"))
        self.assertNotIn("Not reviewed yet.", self.text("#decision"))

    def test_no_command_of_the_page_sends_jobs_to_whatever_worker_listens(self):
        self.open(SAMPLE)
        commands = self.value("[...document.querySelectorAll('pre')].map(command => command.innerText)")
        self.assertTrue(commands)
        self.assertEqual([], [command for command in commands if not command.startswith("onced rehearse --")])

    def test_the_first_screen_holds_verdict_scenarios_guard_limits_and_decision(self):
        self.open(SAMPLE, unfolded=False)
        ends = self.value("['verdict', 'scenarios', 'guard', 'limits', 'decision'].map(id => document.getElementById(id).getBoundingClientRect().bottom)")
        self.assertLess(max(ends), 1000, ends)

    def test_it_prints_on_a_few_pages_whatever_is_unfolded(self):
        record = copy.deepcopy(SAMPLE)
        for scenario in record["observed"]["scenarios"]:
            scenario["evidence"] *= 40
        for unfolded in (False, True):
            self.open(record, unfolded=unfolded)
            path = pathlib.Path(self.directory.name) / "record.pdf"
            self.browser.print_to(path)
            pages = len(re.findall(rb"/Type\s*/Page\b", path.read_bytes()))
            self.assertTrue(1 <= pages <= 4, pages)

    def test_a_scenario_that_differs_and_a_review_that_is_past_are_said(self):
        record = copy.deepcopy(SAMPLE)
        record["facts"]["verdict"] = "failed"
        record["facts"]["counts"].update(passed=12, failed=1)
        record["facts"]["scenarios"][1]["status"] = "failed"
        record["facts"]["scenarios"][1]["seen"]["effects"] = 5
        record["facts"]["plan"]["review_by"] = "2020-01-31"
        self.open(record)
        self.assertTrue(self.text("h1").startswith("Failed: "))
        self.assertIn("12 of 13 scenarios", self.text("#verdict"))
        self.assertIn("duplicate publish", self.text("#verdict .accent"))
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
        self.assertIn(HOSTILE, self.text(".deliveries td.log"))
        self.assertIn(HOSTILE, self.text("figcaption"))

    def test_the_record_in_the_page_is_the_record(self):
        for record in (SAMPLE, made_hostile(SAMPLE)):
            data = render(record).split('id="record">', 1)[1].split("</script>", 1)[0]
            self.assertEqual(record, json.loads(data))

    def test_a_worker_of_someone_else_without_events_is_drawn(self):
        record = copy.deepcopy(SAMPLE)
        record["facts"].update(constraint=None, failing_insert=None)
        record["facts"]["worker"].update(kind="command", command="python3 worker.py", count="python3 worker.py --count", kill_when="committed")
        for scenario in record["observed"]["scenarios"]:
            for row in scenario["evidence"]:
                row.update(consume_at=None, commit_at=None, rows_written=None, outcome=None, log=None)
        self.open(record)
        self.assertIn("python3 worker.py --count", self.text("#setting"))

    def test_a_rehearsal_in_which_nothing_ran_is_drawn(self):
        record = copy.deepcopy(SAMPLE)
        for fact, seen in zip(record["facts"]["scenarios"], record["observed"]["scenarios"]):
            fact.update(status="skipped", seen=None, effects_before=None, effects_after=None, outcomes=[])
            seen.update(started_at=None, ended_at=None, endpoints=None, processes=[], queries=[], timeline=[], backlog=[], evidence=[])
        record["facts"].update(verdict="failed", counts={"scenarios": 14, "passed": 0, "failed": 0, "skipped": 14})
        self.open(record)
        self.assertIn("0 of 0 scenarios", self.text("#verdict"))
        self.assertIn("No control has shown a double effect", self.text("#uncontrolled"))

    def test_no_short_word_of_a_table_is_broken_over_lines(self):
        record = copy.deepcopy(SAMPLE)
        for scenario in record["observed"]["scenarios"]:
            for process in scenario["processes"]:
                process["command"] += " --events /a/directory/that/is/as/long/as/they/are/in/practice/events.jsonl" * 3
        self.open(record)
        broken = self.value("""[...document.querySelectorAll('.fine td:not(:first-child)')].filter(cell => !cell.querySelector('code')).flatMap(cell => {
          const node = cell.firstChild, range = document.createRange();
          return !node || node.nodeType !== Node.TEXT_NODE ? [] : [...node.data.matchAll(/\\S+/g)].filter(({ index, 0: word }) => {
            range.setStart(node, index); range.setEnd(node, index + word.length); return range.getClientRects().length > 1; }).map(([word]) => word); })""")
        self.assertEqual([], broken)

    def test_a_command_is_shown_as_it_was_run(self):
        self.open(SAMPLE)
        commands = [process["command"] for scenario in SAMPLE["observed"]["scenarios"] for process in scenario["processes"]]
        self.assertEqual(commands, self.value("[...document.querySelector('#processes .fine').querySelectorAll('code')].map(code => code.innerText)"))

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

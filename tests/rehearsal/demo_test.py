#!/usr/bin/python3
"""Verifies the demo's rehearsal, played once with real processes: that its plan comes out, that its record holds what the plan and the
timelines promise, that `--verify` finds what is edited in it, that `--rerun` gives the same facts, and that an interrupted run leaves
nothing behind. Does not verify: the worker beyond the plan, the page (page_test.py), nor edits that are consistent in every file."""
import copy
import csv
import ctypes
import hashlib
import io
import json
import os
import pathlib
import pty
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAN = ROOT / "tools/rehearsals/demo/plan.toml"
ONCED = os.path.abspath(os.environ.get("ONCED_COMMAND", "build/release/onced"))
RENDER = os.path.abspath(os.environ.get("RENDER_PAGE", "build/release/render_page"))
PATIENCE_S = 240
SEED = int(os.environ.get("ONCED_TEST_SEED", "20261130"))
EDITS_OF_A_KIND = 3
FILES = ("record.json", "record.html", "evidence.csv", "plan.toml", "jobs.jsonl")
MAY_BE_SKIPPED = ("store unavailable", "power loss")
USAGE, DATA, INTERNAL, TRY_AGAIN, CONFIGURATION = 64, 65, 70, 75, 78


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def rehearse(*arguments, **environment):
    return subprocess.run([ONCED, "rehearse", *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True,
                          timeout=PATIENCE_S, preexec_fn=end_with_parent)


def lines_of(ended):
    return [json.loads(line) for line in ended.stdout.splitlines()]


def problems_of(ended):
    return [line["problem"] for line in lines_of(ended) if "problem" in line]


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def processes_with(marker):
    """The command lines, by process id, of those that have the marker in their environment and still run."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def parent_of(record, path):
    for key in path[:-1]:
        record = record[key]
    return record


def edited(record, path, value):
    """A copy in which one value is another, or absent where the other is `...`."""
    record = copy.deepcopy(record)
    if value is ...:
        del parent_of(record, path)[path[-1]]
    else:
        parent_of(record, path)[path[-1]] = value
    return record


def shown(path):
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


class Edits:
    """What may be edited in a record, by kind: places, the value to put there, and the words by which one problem must name it."""

    def __init__(self, record, draw):
        self.record, self.draw, self.kinds = record, draw, {}
        self.add_of_facts()
        for at, (facts, observed) in enumerate(zip(record["facts"]["scenarios"], record["observed"]["scenarios"])):
            self.add_of_scenario(("facts", "scenarios", at), facts)
            self.add_of_timeline(("observed", "scenarios", at, "timeline"), facts["name"], observed["timeline"])
            self.add_of_outside(("observed", "scenarios", at), facts["name"], observed)
            for row_at, row in enumerate(observed["evidence"]):
                self.add_of_row(("observed", "scenarios", at, "evidence", row_at), facts, row)
        self.add_missing(())

    def add(self, kind, path, value, *words):
        self.kinds.setdefault(kind, []).append((path, value, words))

    def drawn(self):
        for kind, edits in sorted(self.kinds.items()):
            for edit in self.draw.sample(edits, min(EDITS_OF_A_KIND, len(edits))):
                yield kind, *edit

    def another(self, value):
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)):
            return value + self.draw.randint(1, 3)
        if isinstance(value, list):
            return value + ["another"]
        return "another" if value is None else value + "x"

    def add_of_facts(self):
        facts = self.record["facts"]
        self.add("verdict", ("facts", "verdict"), "failed" if facts["verdict"] == "passed" else "passed", "verdict:")
        for key, value in facts["counts"].items():
            self.add("counts", ("facts", "counts", key), self.another(value), "counts:", key)
        for key, value in (facts["failing_insert"] or {}).items():
            self.add("failing insert", ("facts", "failing_insert", key), self.another(value), "failing_insert:")
        for part in ("plan", "seeds", "side_effect", "worker"):
            for key, value in facts[part].items():
                if key == "sha256":
                    self.add("sha256", ("facts", part, key), value[::-1], facts[part]["file"], "SHA-256")
                elif (part, key) not in (("plan", "file"), ("seeds", "file"), ("worker", "command"), ("worker", "count")):
                    self.add(part, ("facts", part, key), self.another(value), f"{part}.{key}:")
        self.add("only", ("facts", "options", "only"), facts["scenarios"][0]["name"], "scenarios:")
        for at, measure in enumerate(self.record["observed"]["measures"]):
            for key in ("value", "numerator", "denominator"):
                value = 1 if measure[key] is None else measure[key] + 1
                self.add("measures", ("observed", "measures", at, key), value, "measures:", measure["name"])

    def add_of_scenario(self, path, facts):
        name = facts["name"] + ":"
        kind = "control's " if facts["is_control"] else ""
        for status in {"passed", "failed", "skipped"} - {facts["status"]}:
            self.add("status", (*path, "status"), status, name, "status")
        self.add("why", (*path, "why"), self.another(facts["why"]) if facts["why"] is None else None, name)
        self.add("name", (*path, "name"), name + "x", "scenarios:")
        self.add("is_control", (*path, "is_control"), not facts["is_control"], f"scenarios[{path[-1]}]")
        self.add("risk", (*path, "risk"), self.another(facts["risk"]), name, "risk")
        self.add("worker of a scenario", (*path, "worker"), "another", name, "worker")
        self.add("differences", (*path, "differences"), self.another(facts["differences"]), name, "differences")
        for key, value in facts["expected"].items():
            self.add(kind + "expected", (*path, "expected", key), self.another(value), name, "expected")
        for key, value in (facts["seen"] or {}).items():
            self.add(kind + "seen", (*path, "seen", key), self.another(value), name, "" if key == "dead_letters" else f"seen.{key}")
        self.add("jobs", (*path, "jobs"), facts["jobs"] + 1, name, "jobs")
        for key in ("effects_before", "effects_after"):
            self.add(key, (*path, key), 1 if facts[key] is None else facts[key] + 1, name, "effects")
        for at, outcome in enumerate(facts["outcomes"]):
            self.add("outcomes", (*path, "outcomes", at, "count"), outcome["count"] + 1, name, "outcomes")
            self.add("outcomes", (*path, "outcomes", at, "outcome"), "conflict" if outcome["outcome"] == "stored" else "stored", name, "outcomes")
            self.add("outcomes", (*path, "outcomes", at, "operation_id"), "another", name, "outcomes")
            self.add("an outcome removed", (*path, "outcomes", at), ..., name, "outcomes")

    def add_of_row(self, path, facts, row):
        name, place = facts["name"] + ":", f"evidence[{path[-1]}]"
        self.add("row's scenario", (*path, "scenario"), "another", name, place)
        self.add("row's rows_before", (*path, "rows_before"), (row["rows_before"] or 0) + 1, name, place)
        self.add("row's commit_shown_by", (*path, "commit_shown_by"), None if row["commit_shown_by"] else "a row", name, place)
        self.add("row's rows_written", (*path, "rows_written"), 0 if row["rows_written"] else 1, name, place)
        if row["operation_id"] is not None:
            self.add("row's id", (*path, "operation_id"), "another", name, "another is none of the seeds")
        if row["log"] is None:
            self.add("row's outcome", (*path, "outcome"), "stored", name, place)
        else:
            log = json.loads(row["log"])
            if row["outcome"] is not None:
                self.add("row's log", (*path, "log"), None, name, place)
            self.add("row's log", (*path, "log"), json.dumps(log | {"outcome": "another"}), name, place)
            for key in log.keys() & {"tag", "sender", "sequence", "attempt", "outcome"}:
                self.add(f"row's {key}", (*path, key), self.another(row[key]), name, place)
        final = self.another(row["final_outcome"])
        self.add("row's final_outcome", (*path, "final_outcome"), final, name, "outcomes" if row["final_outcome"] else place)
        if facts["is_control"]:
            return
        self.add("row's commit_at", (*path, "commit_at"), None if row["commit_at"] else row["publish_at"] or row["commit_at"], name, place)
        self.add("row's killed", (*path, "killed"), "another", name, place)
        if row["acknowledgement_at"]:
            self.add("row's acknowledgement_at", (*path, "acknowledgement_at"), None, name, "outcomes")
            self.add("a row removed", path, ..., name, "outcomes")
        elif row["publish_at"]:
            self.add("row's acknowledgement_at", (*path, "acknowledgement_at"), row["publish_at"], name)

    def add_of_outside(self, path, name, observed):
        for at, query in enumerate(observed["queries"]):
            self.add("which count decides", (*path, "queries", at, "decides"), not query["decides"], name + ":", "queries")
            if query["decides"]:
                self.add("what was counted", (*path, "queries", at, "before"), query["after"] + 1, name + ":", "queries")
        if observed["evidence"]:
            self.add("events_dropped", (*path, "events_dropped"), 1, name + ":", "status")
        for at, effect in enumerate(observed["effects"]):
            for key in ("key", "operation_id"):
                self.add(f"effect's {key}", (*path, "effects", at, key), self.another(effect[key]), name + ":", f"effects[{at}]")
            self.add("an effect removed", (*path, "effects", at), ..., name + ":", "seen.effects")
        for at in range(len(observed["late"])):
            self.add("a late settlement removed", (*path, "late", at), ..., name + ":", "seen.late")

    def add_of_timeline(self, path, name, timeline):
        for at, entry in enumerate(timeline):
            place = (name + ":", f"timeline[{at}]")
            self.add("timeline's at_us", (*path, at, "at_us"), entry["at_us"] + 1, *place)
            self.add("timeline's what", (*path, at, "what"), "commit" if entry["what"] != "commit" else "acknowledgement", *place)
            if entry["what"] == "kill":
                self.add("a kill removed", (*path, at), ..., name + ":", "timeline")

    def add_missing(self, path):
        value = self.record
        for key in path:
            value = value[key]
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if path[-1:] == ("build",):
                continue  # which is what the program says of itself
            if isinstance(key, str) and path:
                self.add("a missing key", (*path, key), ..., shown((*path, key)) + ": is missing")
            if isinstance(inner, (dict, list)):
                self.add_missing((*path, key))


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="onced-demo-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.plan = tomllib.loads(PLAN.read_text())
        cls.path = cls.directory / "record"
        cls.played = rehearse(PLAN, "--out", cls.path, "--fast")
        cls.record = json.loads((cls.path / "record.json").read_text())
        cls.facts, cls.observed = cls.record["facts"], cls.record["observed"]
        cls.names = [scenario["name"] for scenario in cls.plan["scenario"]]

    def fresh(self, name):
        return pathlib.Path(tempfile.mkdtemp(prefix=name + "-", dir=self.directory))

    def copied(self):
        """The files of the record, without the directories of its scenarios."""
        path = self.fresh("copy")
        for name in FILES:
            shutil.copy(self.path / name, path)
        return path

    def plan_with(self, worker, scenario):
        """A plan of someone else's worker with one scenario, beside the demo's seeds."""
        path = self.fresh("plan")
        shutil.copy(PLAN.parent / "jobs.jsonl", path)
        text = PLAN.read_text().split("[[scenario]]")[0] + "".join(f"{key} = {json.dumps(value)}\n" for key, value in worker.items())
        (path / "plan.toml").write_text(text + f'[[scenario]]\nname = "{scenario}"\nexpected = {{ effects = 12, stored = 12 }}\n')
        return path / "plan.toml"

    def scenario(self, name):
        at = self.names.index(name)
        return self.facts["scenarios"][at], self.observed["scenarios"][at]

    def timeline(self, name):
        """What happened, in its order; of the job that was in hand at the kill, and of the processes."""
        return [entry["what"] for entry in self.scenario(name)[1]["timeline"]]

    # --- What the plan promises -------------------------------------------------------------------------------------

    def test_every_scenario_passed_or_says_why_it_was_skipped(self):
        self.assertEqual(self.names, [scenario["name"] for scenario in self.facts["scenarios"]])
        for scenario in self.facts["scenarios"]:
            with self.subTest(scenario["name"]):
                self.assertEqual([], scenario["differences"], scenario["why"])
                if scenario["status"] != "passed":
                    self.assertEqual("skipped", scenario["status"])
                    self.assertIn(scenario["name"], MAY_BE_SKIPPED)
                    self.assertTrue(scenario["why"])
        self.assertEqual(("passed", 0), (self.facts["verdict"], self.played.returncode), self.played.stderr)

    def test_the_counts_are_those_that_were_written_before_the_run(self):
        for planned, scenario in zip(self.plan["scenario"], self.facts["scenarios"]):
            if scenario["is_control"] or scenario["seen"] is None:
                continue
            seen = {name: count for name, count in scenario["seen"].items() if count}
            self.assertEqual(planned["expected"], seen, scenario["name"])

    def test_each_control_shows_a_double_effect(self):
        controls = [scenario for scenario in self.facts["scenarios"] if scenario["is_control"]]
        self.assertEqual(["unguarded: memory", "unguarded: check-then-insert"], [control["worker"] for control in controls])
        for control in controls:
            self.assertGreater(control["seen"]["double_effects"], 0, control["name"])
            self.assertGreater(control["seen"]["effects"], control["seen"]["jobs"], control["name"])

    # --- The record -------------------------------------------------------------------------------------------------

    def test_the_files_of_the_record_are_there(self):
        self.assertEqual({*FILES, "scenarios"}, {path.name for path in self.path.iterdir()})
        for part, original in (("plan", PLAN), ("seeds", PLAN.parent / "jobs.jsonl")):
            self.assertEqual(original.read_bytes(), (self.path / original.name).read_bytes())
            self.assertEqual(sha256_of(original), self.facts[part]["sha256"])

    def test_the_evidence_has_the_same_rows_in_both_forms(self):
        header, *cells = csv.reader(io.StringIO((self.path / "evidence.csv").read_text(), newline=""))
        rows = [row for scenario in self.observed["scenarios"] for row in scenario["evidence"]]
        self.assertEqual(len(rows), len(cells))
        for row, line in zip(rows, cells):
            self.assertEqual(list(row), header)
            self.assertEqual(["" if value is None else str(value) for value in row.values()], line)

    def test_what_was_acknowledged_as_stored_was_committed_before(self):
        for facts, observed in zip(self.facts["scenarios"], self.observed["scenarios"]):
            stored = [row for row in observed["evidence"] if row["outcome"] == "stored" and row["acknowledgement_at"]]
            self.assertEqual([1] * len(stored), [row["rows_written"] for row in stored])
            for row in stored if not facts["is_control"] else []:
                self.assertIsNotNone(row["commit_at"], row)
                self.assertLess(row["commit_at"], row["acknowledgement_at"], row)

    def test_each_job_has_one_row_written_however_often_it_was_delivered(self):
        for facts, observed in zip(self.facts["scenarios"], self.observed["scenarios"]):
            if facts["is_control"] or facts["seen"] is None:
                continue
            written = [row["operation_id"] for row in observed["evidence"] if row["rows_written"]]
            self.assertEqual(len(set(written)), len(written), facts["name"])
            self.assertEqual(facts["seen"]["effects"], len(written), facts["name"])

    # --- The kills --------------------------------------------------------------------------------------------------

    def assert_in_order(self, name, *whats):
        line = iter(self.timeline(name))
        for what in whats:
            self.assertIn(what, line, f"{name}: {self.timeline(name)} without {whats} in this order")

    def test_nothing_is_acknowledged_before_the_restart(self):
        killed = [observed["name"] for observed in self.observed["scenarios"] if "kill" in [entry["what"] for entry in observed["timeline"]]]
        self.assertEqual([name for name in self.names if "kill" in name], [name for name in killed if "kill" in name])
        for name in killed:
            line = self.timeline(name)
            self.assertEqual(1, line.count("acknowledgement"), name)
            self.assertGreater(line.index("acknowledgement"), line.index("kill"), name)
            if "restart" in line:
                self.assertGreater(line.index("acknowledgement"), line.index("restart"), name)

    def test_a_kill_before_the_commit_leaves_nothing_and_the_retry_commits(self):
        self.assert_in_order("kill before commit", "publish", "consume", "kill", "restart", "redelivery", "commit", "acknowledgement")
        self.assertEqual(1, self.timeline("kill before commit").count("commit"))

    def test_a_kill_after_the_commit_leaves_a_row_that_the_retry_finds(self):
        self.assert_in_order("kill after commit", "publish", "consume", "commit", "kill", "restart", "redelivery", "acknowledgement")
        self.assertEqual(1, self.timeline("kill after commit").count("commit"))
        acknowledged = [entry for entry in self.scenario("kill after commit")[1]["timeline"] if entry["what"] == "acknowledgement"]
        self.assertEqual(["duplicate"], [entry["detail"] for entry in acknowledged])

    def test_a_sender_killed_before_its_first_send_sends_once_it_is_resumed(self):
        self.assert_in_order("kill the sender after the outbox write", "kill", "publish", "consume", "commit", "acknowledgement")

    def test_a_sender_killed_after_its_send_finds_its_jobs_done_once_it_is_resumed(self):
        self.assert_in_order("kill the sender after send", "publish", "consume", "commit", "kill", "acknowledgement")
        self.assertEqual(1, self.timeline("kill the sender after send").count("commit"))

    def test_the_control_commits_the_job_again_after_its_kill(self):
        self.assert_in_order("unguarded memory under a kill", "publish", "commit", "kill", "restart", "redelivery", "commit")

    # --- What is counted --------------------------------------------------------------------------------------------

    def test_the_killed_delivery_tells_its_log_and_its_row_and_what_was_there_before(self):
        rows = self.scenario("kill after commit")[1]["evidence"]
        killed, = [row for row in rows if row["killed"]]
        again, = [row for row in rows if row["operation_id"] == killed["operation_id"] and not row["killed"]]
        self.assertEqual(("delivery.consumed", 0, 1), (json.loads(killed["log"])["event"], killed["rows_before"], killed["rows_written"]))
        self.assertEqual(killed["operation_id"], json.loads(killed["commit_shown_by"])["row"]["operation_id"])
        self.assertEqual((1, 0, "duplicate"), (again["rows_before"], again["rows_written"], again["outcome"]))

    def test_one_count_of_each_scenario_decides(self):
        for facts, observed in zip(self.facts["scenarios"], self.observed["scenarios"]):
            if facts["seen"] is None:
                continue
            count, = [query for query in observed["queries"] if query["decides"]]
            self.assertEqual(0, count["before"], facts["name"])
            if not facts["is_control"]:
                self.assertEqual((0, facts["jobs"]), (facts["effects_before"], count["after"]), facts["name"])

    def test_the_duplicates_that_are_measured_are_the_rows_that_say_so(self):
        rows = [row for facts, observed in zip(self.facts["scenarios"], self.observed["scenarios"]) if not facts["is_control"] for row in observed["evidence"]]
        duplicates = [row for row in rows if (row["final_outcome"] or row["outcome"]) == "duplicate"]
        volume, = [measure for measure in self.observed["measures"] if measure["name"] == "duplicate_volume"]
        self.assertEqual((len(duplicates), len(rows)), (volume["value"], volume["denominator"]))
        self.assertGreater(len(duplicates), 0)

    # --- Reviews ----------------------------------------------------------------------------------------------------

    def test_a_review_is_in_the_record_and_the_record_still_fits_together(self):
        path = self.copied()
        before = sha256_of(path / "record.json")
        refused = rehearse("--review", path, "--by", "Kim", "--decision", "rejected")
        self.assertEqual((USAGE, before), (refused.returncode, sha256_of(path / "record.json")), refused.stderr)
        reviewed = rehearse("--review", path, "--by", "Kim", "--decision", "rejected", "--note", "too few jobs")
        self.assertEqual(0, reviewed.returncode, reviewed.stderr)
        record = json.loads((path / "record.json").read_text())
        review, = record["reviews"]
        self.assertEqual(("Kim", "rejected", "too few jobs", before), tuple(review[key] for key in ("by", "decision", "note", "sha256")))
        self.assertLess(self.observed["ended_at"], review["at"])
        self.assertEqual([], problems_of(rehearse("--verify", path)))
        self.assertIn("too few jobs", (path / "record.html").read_text())
        review["decision"] = "accepted"
        (path / "record.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        self.assertEqual(1, rehearse("--verify", path).returncode)

    # --- A stranger's record ----------------------------------------------------------------------------------------

    def stranger(self):
        """A record that fits together, of a worker whose command leaves a trace; and the trace."""
        path = self.fresh("stranger")
        trace = path / "trace"
        plan = self.plan_with({"command": ["sh", "-c", f"touch {trace}; exit 3"], "count": ["echo", '{"results":12}']}, "sequential")
        rehearse(plan, "--out", path / "record", "--fast")
        self.assertEqual([], problems_of(rehearse("--verify", path / "record")))
        trace.unlink()
        return path / "record", trace

    def test_the_commands_of_a_record_are_shown_and_run_only_if_the_option_says_so(self):
        record, trace = self.stranger()
        ended = rehearse("--rerun", record)
        self.assertEqual((USAGE, False), (ended.returncode, trace.exists()), ended.stderr)
        self.assertIn(json.dumps(f"touch {trace}; exit 3"), ended.stderr)
        self.assertIn("--run-commands", ended.stderr)
        ended = rehearse("--rerun", record, "--run-commands")
        self.assertEqual((0, True), (ended.returncode, trace.exists()), ended.stderr)

    def test_a_terminal_is_asked_before_a_command_of_a_record_is_run(self):
        record, trace = self.stranger()
        for answer, runs in (("no", False), ("yes", True)):
            ours, theirs = pty.openpty()
            run = subprocess.Popen([ONCED, "rehearse", "--rerun", record], cwd=ROOT, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs,
                                   preexec_fn=end_with_parent)
            os.close(theirs)
            self.addCleanup(os.close, ours)
            asked = b""
            while b"Type yes" not in asked:
                asked += os.read(ours, 4096)
            os.write(ours, answer.encode() + b"\n")
            self.assertEqual(0 if runs else USAGE, run.wait(PATIENCE_S))
            self.assertEqual(runs, trace.exists(), answer)

    def test_a_record_that_does_not_fit_together_runs_nothing(self):
        record, trace = self.stranger()
        with open(record / "evidence.csv", "a") as file:
            file.write("more")
        ended = rehearse("--rerun", record, "--run-commands")
        self.assertEqual((DATA, False), (ended.returncode, trace.exists()), ended.stderr)
        self.assertEqual(["evidence.csv"], [problem.split(":")[0] for problem in problems_of(ended)])

    def test_a_text_that_would_exhaust_stack_or_memory_is_refused(self):
        path = self.fresh("bombs")
        dotted = "a" + ".a" * 200_000
        for name, text, code in (("long.toml", f"{dotted} = 1\n", DATA), ("deep.toml", f"{dotted[:60_000]} = 1\n", CONFIGURATION),
                                 ("nested.toml", "a = " + "[" * 30_000, CONFIGURATION)):
            (path / name).write_text(text)
            ended = rehearse(path / name, "--out", path / "record")
            self.assertEqual((code, False), (ended.returncode, (path / "record").exists()), (name, ended.stderr))
        (path / "serve.toml").write_text(f"{dotted[:15_000]} = 1\n")
        ended = subprocess.run([ONCED, "serve", "--config", path / "serve.toml", "--data", path / "data"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(CONFIGURATION, ended.returncode, ended.stderr)
        for name, text in (("values", '{"format":"onced rehearsal","more":[' + "{}," * 10_000_000 + "0]}"), ("bytes", "[" + " " * 60_000_000)):
            record = path / name
            record.mkdir()
            (record / "record.json").write_text(text)
            ended = subprocess.run([ONCED, "rehearse", "--verify", record], capture_output=True, text=True, timeout=PATIENCE_S,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
            self.assertEqual(DATA, ended.returncode, (name, ended.stderr))

    # --- Verify -----------------------------------------------------------------------------------------------------

    def test_verify_finds_no_problem_and_prints_the_digest(self):
        ended = rehearse("--verify", self.path)
        self.assertEqual([{"record": str(self.path), "sha256": sha256_of(self.path / "record.json"), "problems": 0}], lines_of(ended))
        self.assertEqual(0, ended.returncode)

    def test_an_edit_of_the_record_is_found_and_its_place_is_named(self):
        path = self.copied()
        for kind, place, value, words in Edits(self.record, random.Random(SEED)).drawn():
            with self.subTest(kind=kind, place=shown(place), value=value, ONCED_TEST_SEED=SEED):
                (path / "record.json").write_text(json.dumps(edited(self.record, place, value)))
                ended = rehearse("--verify", path)
                self.assertEqual(1, ended.returncode, ended.stderr)
                named = [problem for problem in problems_of(ended) if all(word in problem for word in words)]
                self.assertTrue(named, f"no problem with {words}: {problems_of(ended)}")

    def test_an_edit_of_a_file_beside_it_is_found(self):
        draw = random.Random(SEED)
        for name in FILES[1:]:
            with self.subTest(name=name, ONCED_TEST_SEED=SEED):
                path = self.copied()
                content = bytearray((path / name).read_bytes())
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(7)
                (path / name).write_bytes(content)
                ended = rehearse("--verify", path)
                self.assertEqual(1, ended.returncode, ended.stderr)
                self.assertEqual([name], [problem.split(":")[0] for problem in problems_of(ended)][:1])

    def test_a_file_that_is_cut_or_random_or_gone_is_refused_with_a_message(self):
        draw = random.Random(SEED)
        damages = {"empty": lambda bytes_: b"", "cut": lambda bytes_: bytes_[:draw.randrange(len(bytes_))],
                   "random": lambda bytes_: draw.randbytes(len(bytes_)), "deep": lambda bytes_: b"[" * 100_000, "gone": None}
        for damage, damaged in damages.items():
            for names in ((name,) for name in FILES) if damage != "random" else (*((name,) for name in FILES), FILES):
                with self.subTest(damage=damage, names=names, ONCED_TEST_SEED=SEED):
                    path = self.copied()
                    for name in names:
                        content = (path / name).read_bytes()
                        (path / name).unlink()
                        if damaged is not None:
                            (path / name).write_bytes(damaged(content))
                    self.assert_refused(rehearse("--verify", path), names)

    def assert_refused(self, ended, names):
        self.assertNotIn(ended.returncode, (0, INTERNAL), ended.stderr)
        self.assertGreater(ended.returncode, 0, "it crashed")
        self.assertTrue(any(name in ended.stdout + ended.stderr for name in names), ended.stdout + ended.stderr)

    def test_json_that_nests_too_deep_is_refused_wherever_it_stands(self):
        deep = "[" * 100_000 + "]" * 100_000
        places = {"record.json": ('"build": {', '"build": {"deep": ' + deep + ", "), "jobs.jsonl": ("{", '{"deep": ' + deep + ", ")}
        for name, (old, new) in places.items():
            path = self.copied()
            text = (path / name).read_text()
            self.assertIn(old, text)
            (path / name).write_text(text.replace(old, new, 1))
            for option in ("--verify", "--rerun"):
                with self.subTest(name=name, option=option):
                    self.assert_refused(rehearse(option, path), (name,))

    def test_a_record_whose_plan_was_exchanged_runs_nothing_of_it(self):
        path = self.copied()
        trace = path / "trace"
        text = (path / "plan.toml").read_text()
        (path / "plan.toml").write_text(text.replace("[worker]", f'[worker]\ncommand = ["touch", "{trace}"]\ncount = ["true"]'))
        ended = rehearse("--rerun", path)
        self.assertEqual((DATA, False), (ended.returncode, trace.exists()), ended.stderr)

    def test_a_record_that_cannot_be_read_is_not_played_again(self):
        draw = random.Random(SEED)
        for name in ("record.json", "plan.toml", "jobs.jsonl"):
            for content in (b"", draw.randbytes(2000)):
                with self.subTest(name=name, bytes=len(content), ONCED_TEST_SEED=SEED):
                    path = self.copied()
                    (path / name).write_bytes(content)
                    self.assert_refused(rehearse("--rerun", path), (name,))

    # --- What cannot be played --------------------------------------------------------------------------------------

    def test_a_scenario_that_cannot_be_played_here_is_skipped_and_its_record_belongs_together(self):
        path = self.directory / "skipped"
        rehearse(PLAN, "--out", path, "--fast", "--only", "power loss", PATH="/nowhere")  # no mkfs.ext4
        scenario = json.loads((path / "record.json").read_text())["facts"]["scenarios"][0]
        self.assertEqual("skipped", scenario["status"])
        self.assertTrue(scenario["why"])
        self.assertEqual([], problems_of(rehearse("--verify", path)))

    def test_a_worker_that_does_not_do_its_part_is_a_row_that_says_so(self):
        good = ["echo", '{"results":12}']
        workers = {
            "the worker ended with exit 3": {"command": ["sh", "-c", "sleep 1000 & exit 3"], "count": good},
            "the worker ended with exit 127": {"command": ["sh", "-c", "exit 127"], "count": good},
        }
        for why, worker in workers.items():
            path = self.fresh("worker") / "record"
            ended = rehearse(self.plan_with(worker, "sequential"), "--out", path, "--fast", ONCED_DEMO_TEST=str(path))
            scenario = json.loads((path / "record.json").read_text())["facts"]["scenarios"][0]
            self.assertEqual((1, "failed", why), (ended.returncode, scenario["status"], scenario["why"]), ended.stderr)
            self.assertEqual([], problems_of(rehearse("--verify", path)))
            self.awaited(lambda: not processes_with(f"ONCED_DEMO_TEST={path}"))  # what it has started is gone too

    # --- Again ------------------------------------------------------------------------------------------------------

    def test_a_rerun_gives_the_same_facts_and_leaves_nothing_behind(self):
        temporary = self.fresh("tmp")
        ended = rehearse("--rerun", self.path, TMPDIR=str(temporary))
        self.assertEqual([{"record": str(self.path), "verdict": self.facts["verdict"], "differences": 0}], lines_of(ended))
        self.assertEqual(0, ended.returncode)
        self.assertEqual([], list(temporary.iterdir()))

    def test_one_scenario_of_the_plan_is_played_and_other_seeds_are_noticed(self):
        path = self.directory / "only"
        played = rehearse(PLAN, "--out", path, "--fast", "--only", "sequential")
        record = json.loads((path / "record.json").read_text())
        self.assertEqual((0, ["sequential"]), (played.returncode, [scenario["name"] for scenario in record["facts"]["scenarios"]]))
        self.assertEqual([], problems_of(rehearse("--verify", path)))
        seeds = path / "jobs.jsonl"
        seeds.write_text(seeds.read_text().replace('"sum-1"', '"sum-0"'))
        record["facts"]["seeds"]["sha256"] = sha256_of(seeds)
        (path / "record.json").write_text(json.dumps(record))
        verified, played = rehearse("--verify", path), rehearse("--rerun", path)
        self.assertEqual(1, verified.returncode)
        self.assertIn("sequential: evidence: sum-1 is none of the seeds", problems_of(verified))
        self.assertEqual(DATA, played.returncode, played.stderr)

    def test_a_rerun_names_the_facts_that_differ(self):
        path = self.directory / "differs"
        rehearse(PLAN, "--out", path, "--fast", "--only", "sequential")
        record = json.loads((path / "record.json").read_text())
        record["facts"]["unproven"][0] = "nothing"
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        (path / "record.json").write_text(text)
        (path / "record.html").write_bytes(subprocess.run([RENDER], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout)
        self.assertEqual([], problems_of(rehearse("--verify", path)))
        played = rehearse("--rerun", path)
        self.assertEqual(1, played.returncode, played.stderr)
        self.assertEqual(['unproven[0]: "nothing", now "%s"' % self.facts["unproven"][0]],
                         [line["difference"] for line in lines_of(played) if "difference" in line])

    def test_the_list_has_every_scenario_of_the_plan(self):
        ended = rehearse("--list")
        self.assertEqual(0, ended.returncode)
        listed = {line["scenario"]: line["title"] for line in lines_of(ended)}
        for scenario in self.facts["scenarios"]:
            self.assertEqual(scenario["title"], listed.get(scenario["name"]))

    def test_a_second_run_into_the_same_directory_is_refused_and_touches_nothing(self):
        def tree():
            return {path: path.stat().st_mtime_ns for path in (self.path, *self.path.rglob("*"))}
        before = tree()
        ended = rehearse(PLAN, "--out", self.path, "--fast")
        self.assertEqual(USAGE, ended.returncode, ended.stderr)
        self.assertIn(str(self.path), ended.stderr)
        self.assertEqual(before, tree())

    # --- Interrupted ------------------------------------------------------------------------------------------------

    def test_an_interrupted_run_ends_and_leaves_neither_processes_nor_directories(self):
        temporary, out = self.fresh("tmp"), self.directory / "interrupted"
        marker = f"ONCED_DEMO_TEST={out}"
        environment = os.environ | {"TMPDIR": str(temporary), "ONCED_DEMO_TEST": str(out)}
        run = subprocess.Popen([ONCED, "rehearse", PLAN, "--out", out, "--fast"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_parent)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        serve = self.awaited(lambda: [words for words in processes_with(marker).values() if "serve" in words])[0]
        sockets = pathlib.Path(serve[serve.index("--jobs") + 1].removeprefix("ipc://")).parents[1]
        run.send_signal(signal.SIGINT)
        code = run.wait(PATIENCE_S)
        self.assertEqual(TRY_AGAIN, code)
        self.awaited(lambda: not processes_with(marker))
        self.assertFalse(sockets.exists(), sockets)
        self.assertEqual([], list(temporary.iterdir()))
        self.assertFalse(out.exists())

    def awaited(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not (held := condition()):
            self.assertLess(time.monotonic(), deadline, "waited in vain")
            time.sleep(0.01)
        return held


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""Verifies the rehearsal of effects outside the store, played once with real handlers and a fake provider: that its plan comes out, that
its record holds the effects as the provider has them, that a policy's risk is counted apart, and that `--verify` finds what is edited in
it. Does not verify the handlers and the provider by themselves (handlers_test.py, fake_provider_test.py), nor what demo_test.py does of
any record."""
import collections
import json
import os
import pathlib
import random
import sys
import tempfile
import tomllib
import unittest

sys.dont_write_bytecode = True  # into the source tree
import demo_test  # noqa: E402
from demo_test import ROOT, SEED, Edits, edited, problems_of, rehearse, shown  # noqa: E402

PLAN = ROOT / "tools/rehearsals/external/plan.toml"
RISK = "not idempotent, retry"
USAGE_OF_PLAN = 78


class External(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="onced-external-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.plan = tomllib.loads(PLAN.read_text())
        cls.path = cls.directory / "record"
        cls.played = rehearse(PLAN, "--out", cls.path, "--fast")
        cls.record = json.loads((cls.path / "record.json").read_text())
        cls.facts, cls.observed = cls.record["facts"], cls.record["observed"]
        cls.scenarios = {facts["name"]: (facts, observed) for facts, observed in zip(cls.facts["scenarios"], cls.observed["scenarios"])}

    def effects_of(self, name):
        """How many there are of each key."""
        return collections.Counter(effect["key"] for effect in self.scenarios[name][1]["effects"])

    def measure(self, name):
        [found] = [measure for measure in self.observed["measures"] if measure["name"] == name]
        return found["numerator"], found["denominator"]

    def timeline(self, name):
        return [entry["what"] for entry in self.scenarios[name][1]["timeline"]]

    def test_every_scenario_passed_with_the_counts_that_were_written_before_the_run(self):
        for planned in self.plan["scenario"]:
            facts, _ = self.scenarios[planned["name"]]
            self.assertEqual("passed", facts["status"], (planned["name"], facts["why"], facts["differences"]))
            self.assertEqual(planned["expected"], {name: count for name, count in facts["seen"].items() if count}, planned["name"])
        self.assertEqual(("passed", 0), (self.facts["verdict"], self.played.returncode), self.played.stderr)

    def test_the_effects_are_those_in_the_files_of_the_provider(self):
        for name, (_, observed) in self.scenarios.items():
            state = pathlib.Path(observed["directory"]) / "effects.jsonl"
            lines = state.read_text().splitlines() if state.exists() else []
            self.assertEqual([json.loads(line)["key"] for line in lines], [effect["key"] for effect in observed["effects"]], name)

    def test_only_the_policy_that_risks_it_has_a_double_effect(self):
        for name, (facts, observed) in self.scenarios.items():
            times = set(self.effects_of(name).values()) if observed["effects"] else {1}
            self.assertEqual({2} if name == RISK else {1}, times, name)
            self.assertEqual(name == RISK, facts["risk"] is not None)

    def test_the_double_effects_of_a_risk_are_counted_apart(self):
        others = sum(facts["seen"]["stored"] + facts["seen"]["settled"] for name, (facts, _) in self.scenarios.items() if name != RISK)
        self.assertEqual((0, others), self.measure("duplicate_effects_per_1000_accepted_jobs"))
        self.assertEqual((12, 12), self.measure("double_effects_per_1000_jobs_at_risk"))

    def test_each_job_whose_provider_was_asked_is_counted_as_reconciled(self):
        self.assertEqual(12, self.scenarios["not idempotent, query"][1]["handled"]["reconciled"])
        self.assertEqual(12, self.scenarios["not idempotent, hold"][1]["handled"]["resolved"])
        self.assertEqual(24, self.measure("reconciled_jobs_per_100_failures")[0])

    def test_the_worker_is_killed_between_the_effect_and_its_commit(self):
        line = self.timeline("kill during the external call")
        steps = [line.index(what) for what in ("publish", "effect", "kill", "restart", "commit", "acknowledgement")]
        self.assertEqual(sorted(steps), steps, line)
        self.assertEqual((1, 1), (line.count("effect"), line.count("commit")))

    def test_the_first_worker_of_a_chain_is_killed_between_its_commit_and_the_effect_of_the_next(self):
        line = self.timeline("chain of two workers")
        steps = [line.index(what) for what in ("publish", "commit", "kill", "restart", "effect")]
        self.assertEqual(sorted(steps), steps, line)
        self.assertEqual((1, 1), (line.count("effect"), line.count("commit")))

    def test_each_first_run_that_outlived_its_lease_is_refused_and_the_second_stands(self):
        _, observed = self.scenarios["stale owner finishing late"]
        self.assertEqual(sorted({row["operation_id"] for row in observed["evidence"]}), sorted(late["operation_id"] for late in observed["late"]))
        self.assertEqual({1}, {late["receive"] for late in observed["late"]})

    def test_verify_finds_no_problem(self):
        self.assertEqual([], problems_of(rehearse("--verify", self.path)))

    def test_an_edit_of_the_record_is_found_and_its_place_is_named(self):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        for name in demo_test.FILES:
            (path / name).write_bytes((self.path / name).read_bytes())
        for kind, place, value, words in Edits(self.record, random.Random(SEED)).drawn():
            with self.subTest(kind=kind, place=shown(place), value=value, ONCED_TEST_SEED=SEED):
                (path / "record.json").write_text(json.dumps(edited(self.record, place, value)))
                ended = rehearse("--verify", path)
                self.assertEqual(1, ended.returncode, ended.stderr)
                named = [problem for problem in problems_of(ended) if all(word in problem for word in words)]
                self.assertTrue(named, f"no problem with {words}: {problems_of(ended)}")

    def test_a_plan_without_a_handler_is_refused_before_anything_is_played(self):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        before, _, rest = PLAN.read_text().partition("[handler]")
        (path / "plan.toml").write_text(before + "[[scenario]]" + rest.split("[[scenario]]", 1)[1])
        (path / "jobs.jsonl").write_bytes((PLAN.parent / "jobs.jsonl").read_bytes())
        ended = rehearse(path / "plan.toml", "--out", path / "record")
        self.assertEqual((USAGE_OF_PLAN, False), (ended.returncode, os.path.exists(path / "record")), ended.stderr)
        self.assertIn("[handler]", ended.stderr)

    def test_a_type_that_nobody_handles_in_a_scenario_is_refused_before_anything_is_played(self):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        (path / "plan.toml").write_text(PLAN.read_text() + '[[scenario]]\nname = "sequential"\nexpected = { effects = 12, stored = 12 }\n')
        (path / "jobs.jsonl").write_bytes((PLAN.parent / "jobs.jsonl").read_bytes())
        ended = rehearse(path / "plan.toml", "--out", path / "record")
        self.assertEqual((USAGE_OF_PLAN, False), (ended.returncode, os.path.exists(path / "record")), ended.stderr)
        self.assertIn('nobody handles the type "charge" in this scenario', ended.stderr)

    def test_the_count_that_decides_is_that_of_the_provider(self):
        for name, (facts, observed) in self.scenarios.items():
            count, = [query for query in observed["queries"] if query["decides"]]
            self.assertEqual(bool(observed["effects"]), count["command"].startswith("wc -l "), name)
            self.assertEqual((0, facts["seen"]["effects"]), (count["before"], count["after"]), name)


if __name__ == "__main__":
    unittest.main()

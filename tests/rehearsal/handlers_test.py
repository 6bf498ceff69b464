#!/usr/bin/python3
"""Verifies the handlers of tools/handlers against what docs/handlers.md promises of a handler: what they print, their exit codes, and
what they leave behind, run as a worker runs them: with the payload on stdin and no environment but what is listed; and that the
page shows them as they are. Does not verify the worker that runs them."""
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
import unittest

sys.dont_write_bytecode = True  # into the source tree
from provider import PATIENCE_S, ROOT, ProviderTest, end_with_parent  # noqa: E402

HANDLERS = ROOT / "tools/handlers"
PAGE = (ROOT / "docs/handlers.md").read_text()
KEY, TOKEN = "5e" * 32, "0" * 30 + "1f"
ONCED = {"ONCED_OPERATION_ID": "op-1", "ONCED_IDEMPOTENCY_KEY": KEY, "ONCED_ATTEMPT": "1", "ONCED_FENCING_TOKEN": TOKEN}
CHARGE = {"account": "kim", "cents": 1200}
NOBODY = "http://127.0.0.1:1"


def canonical(payload):
    return payload if isinstance(payload, str) else json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class HandlerTest(ProviderTest):
    def begin(self, handler, payload, **environment):
        with tempfile.TemporaryFile() as payload_file:
            payload_file.write(canonical(payload).encode())
            payload_file.seek(0)
            process = subprocess.Popen([HANDLERS / handler], stdin=payload_file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=ONCED | environment, start_new_session=True, preexec_fn=end_with_parent)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ended(self, process):
        """Exit code and result; no result where it printed nothing. It must have told a reason unless it is done."""
        output, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode == 0, errors == "", errors)
        return process.returncode, json.loads(output) if output else None

    def run_handler(self, handler, payload, **environment):
        return self.ended(self.begin(handler, payload, **environment))


class Compress(HandlerTest):
    def setUp(self):
        super().setUp()
        (self.directory / "report.csv").write_text("1,2,3\n" * 100)

    def compress(self, payload, **environment):
        return self.run_handler("compress.sh", payload, **({"PATH": "/usr/bin:/bin", "FILES": str(self.directory)} | environment))

    def names(self):
        return sorted(path.name for path in self.directory.iterdir())

    def test_it_compresses_the_file_and_again_to_the_same(self):
        made = self.directory / "report.csv.gz"
        contents = set()
        for _ in range(2):
            code, result = self.compress({"file": "report.csv"})
            self.assertEqual((0, {"bytes": made.stat().st_size, "file": "report.csv.gz"}), (code, result))
            contents.add(made.read_bytes())
            os.utime(self.directory / "report.csv", (1, 1))
        [content] = contents
        self.assertEqual("1,2,3\n" * 100, gzip.decompress(content).decode())
        self.assertEqual(["report.csv", "report.csv.gz"], self.names())

    def test_what_an_attempt_that_was_killed_left_is_in_nobodys_way(self):
        part = self.directory / f".{KEY}.part"
        part.write_text("half")
        self.assertEqual(0, self.compress({"file": "report.csv"})[0])
        self.assertEqual(["report.csv", "report.csv.gz"], self.names())

    def test_another_payload_is_refused(self):
        others = [{}, {"file": 1}, {"file": ""}, {"file": "report.csv", "to": "x"}, {"file": "absent.csv"}, {"file": "."}, ""]
        strange = ["../report.csv", ".hidden.csv", "-c", "a b", 'a"b', "a\nb", "ä.csv"]
        (self.directory / "inner").mkdir()
        for name in strange:
            (self.directory / "inner" / name).write_text("it is there, and yet it is refused")
        others += [{"file": name} for name in strange]
        for payload in others:
            with self.subTest(payload):
                self.assertEqual((65, None), self.compress(payload, FILES=f"{self.directory}/inner"))
        self.assertEqual([], list(self.directory.rglob("*.gz")))

    def test_a_folder_that_is_not_there_is_tried_again(self):
        code, result = self.compress({"file": "report.csv"}, FILES=f"{self.directory}/absent")
        self.assertEqual((True, None), (code not in (0, 65), result))


class Charge(HandlerTest):
    def charge(self, payload=None, url=None):
        return self.run_handler("charge.py", payload if payload is not None else CHARGE, PROVIDER_URL=url or self.url)

    def reconcile(self, url=None):
        return self.run_handler("charge_reconcile.py", CHARGE, PROVIDER_URL=url or self.url)

    def applied(self, number):
        return 0, {"effect": "applied", "result": {"effect": number, "key": KEY}}

    def test_it_charges_once_under_its_key_and_token(self):
        self.start()
        done = 0, {"effect": 1, "key": KEY}
        self.assertEqual([done, done], [self.charge(), self.charge()])
        [effect] = self.effects()
        self.assertEqual((KEY, CHARGE, TOKEN), (effect["key"], effect["body"], effect["token"]))

    def test_a_wrong_payload_is_refused_before_any_call(self):
        others = [{}, {"account": "kim"}, {"account": "", "cents": 1}, {"account": 1, "cents": 1}, {"account": "kim", "cents": 0},
                  {"account": "kim", "cents": -1}, {"account": "kim", "cents": 0.5}, {"account": "kim", "cents": True},
                  {"account": "kim", "cents": "1"}, {"account": "kim", "cents": 1, "more": None}]
        self.start()
        for payload in others:
            with self.subTest(payload):
                self.assertEqual((65, None), self.charge(payload))
        self.assertEqual([], self.effects())

    def test_where_nobody_listens_nothing_was_done(self):
        self.assertEqual((75, None), self.charge(url=NOBODY))

    def test_whatever_else_fails_leaves_it_unknown(self):
        for mode in ("--fail=1", "--lose-response=1"):
            with self.subTest(mode):
                self.start(mode)
                code, result = self.charge()
                self.assertEqual((True, None), (code not in (0, 65, 75), result))
                self.provider.kill()
                self.provider.wait()

    def test_a_worker_that_stops_still_gets_the_answer(self):
        self.start("--late=500")
        handler = self.begin("charge.py", CHARGE, PROVIDER_URL=self.url)
        self.await_effects(1)
        os.killpg(handler.pid, signal.SIGTERM)
        self.assertEqual((0, {"effect": 1, "key": KEY}), self.ended(handler))

    def test_reconciliation_tells_an_effect_that_is_there_from_one_that_is_not(self):
        self.start("--lose-response=1")
        self.assertEqual((0, {"effect": "absent"}), self.reconcile())
        self.charge()
        self.assertEqual(self.applied(1), self.reconcile())

    def test_reconciliation_of_a_double_effect_tells_the_first_answer(self):
        self.start("--not-idempotent")
        self.charge()
        self.charge()
        self.assertEqual(self.applied(1), self.reconcile())

    def test_without_an_answer_of_the_provider_it_stays_unknown(self):
        code, result = self.reconcile(NOBODY)
        self.assertEqual((True, None), (code != 0, result))


class Page(unittest.TestCase):
    def example(self, name):
        return PAGE.split(f"<!-- example: {name} -->\n")[1].split("```")[1].split("\n", 1)[1]

    def test_it_shows_the_handlers_as_they_are(self):
        for name in ("compress.sh", "charge.py"):
            self.assertIn(self.example(name), (HANDLERS / name).read_text())

    def test_the_programs_of_its_configuration_are_there(self):
        configuration = tomllib.loads(self.example("onced.toml, compress") + self.example("onced.toml, charge"))
        programs = [command[0] for handler in configuration["handlers"].values()
                    for command in (handler["command"], handler.get("reconcile")) if command]
        self.assertEqual(sorted(str(path.relative_to(ROOT)) for path in HANDLERS.iterdir()), sorted(programs))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/python3
"""Verifies tools/fake-provider: which calls have an effect, what is answered in each of its modes, that the file of effects is the
count through restarts, and that callers who misbehave neither stop it nor have effects. Does not verify: its speed, or power loss."""
import select
import signal
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # into the source tree
from provider import COMMAND, PATIENCE_S, ProviderTest  # noqa: E402

CONNECTIONS = 100  # more than it serves at once
BODY_BYTES_MAX = 64 * 1024


def answer(number, key):
    return 200, {"effect": number, "key": key}


class FakeProvider(ProviderTest):
    def found(self, key):
        return self.ask("GET", f"/effects/{key}")

    def send_call(self, key):
        """A call whose answer is not waited for."""
        connection = self.connect()
        connection.request("POST", "/effects", "{}", {"Idempotency-Key": key})
        return connection

    def begin_call(self, header, body=b""):
        """A call with this header, and no more than this of its body."""
        connection = self.connect()
        connection.putrequest("POST", "/effects")
        connection.putheader("Idempotency-Key", "a")
        connection.putheader(*header)
        connection.endheaders(body)
        return connection

    def refused(self, header):
        return self.begin_call(header).getresponse().status

    def test_an_idempotent_provider_has_one_effect_a_key_and_repeats_its_first_answer(self):
        self.start()
        self.assertEqual(answer(1, "a"), self.call("a", '{"cents":5}', **{"Fencing-Token": "00ff"}))
        self.assertEqual(answer(2, "b"), self.call("b"))
        self.assertEqual(answer(1, "a"), self.call("a"))
        self.assertEqual(["a", "b"], self.keys())
        first, second = self.effects()
        self.assertEqual(({"cents": 5}, "00ff", None), (first["body"], first["token"], second["token"]))
        self.assertLess(first["at"], second["at"])
        self.assertEqual((200, {"answer": {"effect": 1, "key": "a"}, "count": 1}), self.found("a"))
        self.assertEqual(404, self.found("c")[0])
        self.assertEqual((200, {"a": 1, "b": 1}), self.ask("GET", "/effects"))

    def test_one_that_is_not_idempotent_has_an_effect_at_each_call(self):
        self.start("--not-idempotent")
        self.assertEqual([answer(1, "a"), answer(2, "a"), answer(3, "b")], [self.call(key) for key in "aab"])
        self.assertEqual(["a", "a", "b"], self.keys())
        self.assertEqual((200, {"answer": {"effect": 1, "key": "a"}, "count": 2}), self.found("a"))
        self.assertEqual((200, {"a": 2, "b": 1}), self.ask("GET", "/effects"))

    def test_calls_that_fail_have_no_effect(self):
        self.start("--fail=2", "--not-idempotent")
        self.assertEqual([503, 503], [self.call("a")[0] for _ in range(2)])
        self.assertEqual((404, []), (self.found("a")[0], self.effects()))
        self.assertEqual(answer(1, "a"), self.call("a"))
        self.assertEqual(503, self.call("b")[0])  # each key has calls of its own

    def test_a_lost_response_comes_after_the_effect(self):
        self.start("--lose-response=1")
        self.call_unanswered("a")
        self.assertEqual(["a"], self.keys())
        self.assertEqual(answer(1, "a"), self.call("a"))
        self.assertEqual(["a"], self.keys())

    def test_after_a_lost_response_one_that_is_not_idempotent_has_the_effect_again(self):
        self.start("--lose-response=all", "--not-idempotent")
        for _ in range(3):
            self.call_unanswered("a")
        self.assertEqual(["a", "a", "a"], self.keys())

    def test_responses_are_lost_once_calls_no_longer_fail(self):
        self.start("--fail=1", "--lose-response=1")
        self.assertEqual(503, self.call("a")[0])
        self.call_unanswered("a")
        self.assertEqual(answer(1, "a"), self.call("a"))

    def test_a_late_answer_comes_after_the_effect_and_holds_up_nobody(self):
        self.start("--late=3600000", "--late-calls=1")
        late = self.send_call("a")
        self.await_effects(1)
        self.assertEqual((200, {"a": 1}), self.ask("GET", "/effects"))
        self.assertEqual(answer(1, "a"), self.call("a"))
        self.assertEqual([], select.select([late.sock], [], [], 0)[0])
        self.provider.terminate()
        self.end(0)

    def test_a_late_answer_comes(self):
        self.start("--late=1")
        self.assertEqual([answer(1, "a"), answer(1, "a")], [self.call("a"), self.call("a")])

    def test_it_crashes_after_the_effect_and_goes_on_from_its_file(self):
        self.start("--crash-after-effect=2")
        self.assertEqual(answer(1, "a"), self.call("a"))
        self.call_unanswered("b")
        self.end(70)
        self.assertEqual(["a", "b"], self.keys())
        self.start("--crash-after-effect=2")
        self.assertEqual([answer(2, "b"), answer(3, "c")], [self.call("b"), self.call("c")])
        self.assertEqual(["a", "b", "c"], self.keys())

    def test_an_effect_whose_line_was_cut_short_has_not_been(self):
        self.start()
        self.call("a")
        self.provider.kill()
        self.provider.wait()
        with self.state.open("a") as state:
            state.write('{"key": "b", "bo')
        self.start()
        self.assertEqual(404, self.found("b")[0])
        self.assertEqual(answer(2, "b"), self.call("b"))
        self.assertEqual(["a", "b"], self.keys())

    def test_a_file_belongs_to_one_provider(self):
        self.start()
        second = subprocess.run([COMMAND, f"--state={self.state}"], capture_output=True, timeout=PATIENCE_S)
        self.assertEqual((69, b""), (second.returncode, second.stdout))
        self.state.with_name("other").write_text("no effects\n")
        other = subprocess.run([COMMAND, f"--state={self.state.with_name('other')}"], capture_output=True, timeout=PATIENCE_S)
        self.assertEqual((69, b""), (other.returncode, other.stdout))

    def test_calls_that_are_none_are_refused_and_have_no_effect(self):
        self.start()
        self.assertEqual(400, self.ask("POST", "/effects", "{}")[0])
        self.assertEqual([400, 400, 400], [self.call(key)[0] for key in ("", "a/b", "a" * 256)])
        self.assertEqual([400, 400], [self.call("a", body)[0] for body in ("", "no json")])
        self.assertEqual(400, self.call("a", "[" * 60_000)[0])
        self.assertEqual(413, self.refused(("Content-Length", str(BODY_BYTES_MAX + 1))))
        self.assertEqual([411, 411, 411], [self.refused(header) for header in
                                           (("Transfer-Encoding", "chunked"), ("Content-Length", "-1"), ("Content-Length", "²"))])
        self.assertEqual(404, self.ask("POST", "/other", "{}", {"Idempotency-Key": "a"})[0])
        self.assertEqual([], self.effects())
        self.assertEqual(answer(1, "a"), self.call("a", '"' + "1" * (BODY_BYTES_MAX - 2) + '"'))

    def test_a_call_that_is_not_whole_has_no_effect(self):
        self.start()
        connection = self.begin_call(("Content-Length", "4"), b"{}")
        connection.sock.shutdown(socket.SHUT_WR)
        self.assertEqual(b"", connection.sock.recv(1))  # it has given up
        self.assertEqual(404, self.found("a")[0])

    def test_more_callers_than_it_serves_wait_their_turn(self):
        self.start()
        callers = [self.connect() for _ in range(CONNECTIONS)]
        for caller in callers:
            caller.connect()
        for caller in callers:
            caller.close()
        self.assertEqual(answer(1, "a"), self.call("a"))

    def test_it_ends_cleanly_however_many_call(self):
        for ending in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(ending):
                self.start()
                for _ in range(CONNECTIONS):
                    self.connect().connect()
                self.provider.send_signal(ending)
                self.end(0)

    def test_its_help_has_examples(self):
        text = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        self.assertIn("tools/fake-provider --not-idempotent --lose-response 1", text)


if __name__ == "__main__":
    unittest.main()

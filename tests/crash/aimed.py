#!/usr/bin/python3
"""Kills aimed where a campaign at random seldom hits: a person's decision about a held job, an outbox that is taken up again, and
the opening of a store. What is left is held against what must be: nothing lost, nothing twice.

Does not show: power loss (tests/power), and kills while jobs are settled (onced_crash). The choices of a seed are repeated; where a
process dies within them varies.

Usage: aimed.py [--kills N] [--seed N] resolve|resume|opening
  resolve  jobs whose handler died are held, and resolved by `pending resolve`: the worker is killed before and after its commit and
           at random, the command is killed, with a worker and with none
  resume   an outbox full of jobs is taken up again, its sender killed at each declared step and at random
  opening  a store is opened after a kill, and killed at a call of the system (strace) or at random before it is ready

Prints a JSON line of figures. Exit 0: all held; 1: not, and the directory is kept.
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from campaigns import Campaign, ONCED, PATIENCE_S, begin, lines  # noqa: E402

# Notes each run; ends with a result where the campaign has allowed it, and by a signal otherwise, so that the job is held.
HANDLER = """#!/bin/sh
echo "$ONCED_OPERATION_ID" >>"$NOTES/runs"
if [ -e "$NOTES/$ONCED_OPERATION_ID.allowed" ]; then
  echo "$ONCED_OPERATION_ID" >>"$NOTES/effects"
  echo '"done"'
  exit 0
fi
kill -9 $$
"""
SENDER_STEPS = ("sender.after-send", "sender.after-reply", "sender.before-removal", "sender.after-removal")
# How often an opening makes these calls, about.
OPENING_CALLS = {"fsync": 8, "fdatasync": 8, "rename": 3, "unlink": 6, "pwrite64": 6, "write": 30, "openat": 60, "ftruncate": 4}


class AimedCampaign(Campaign):
    def kills_left(self):
        return sum(self.kills.values()) < self.options.kills and not self.findings

    def send(self, path, *options):
        return begin(ONCED, "send", path, *self.endpoints, *options, stdin=subprocess.DEVNULL, stderr=self.log,
                     stdout=open(self.directory / "settled.jsonl", "a"))

    def settled(self):
        return [json.loads(line) for line in lines(self.directory / "settled.jsonl") if line.endswith("}")]

    def check_verified(self):
        code, problems = self.command("verify", "--data", self.data)
        self.check(code == 0, "verify:", problems)

    # --- Held jobs

    def held(self):
        code, held = self.command("pending", "list", "--held", "--data", self.data)
        self.check(code == 0, "pending list failed")
        return {row["operation_id"] for row in held}

    def resolve_words(self, job):
        """What its owner says, who knows whether the effect took place."""
        if job in lines(self.notes / "effects"):
            verdict = ["--applied", '"done"']
        elif int(job[1:]) % 2 == 0:
            verdict = ["--applied", '"receipt"']
        else:
            (self.notes / f"{job}.allowed").touch()
            verdict = ["--absent"]
        return ["pending", "resolve", job, "--type", "pay", *verdict, "--by", "kim", "--why", "campaign", "--data", self.data]

    def resolve_and_kill(self, job):
        """One command, and one kill: of the command or of its worker, which may be none."""
        target = self.chance.choice(("worker.before-change", "worker.after-change", "worker", "command", "no worker"))
        self.end_worker(signal.SIGKILL)
        if target != "no worker":
            self.start_worker(*(["--kill-at", f"{target}:1"] if "." in target else []))
        command = begin(ONCED, *self.resolve_words(job), stdout=subprocess.DEVNULL, stderr=self.log)
        if "." not in target:
            time.sleep(self.chance.uniform(0, 0.03 if target == "worker" else 0.12))
            (self.worker if target == "worker" else command).kill()
        success = command.wait(timeout=PATIENCE_S) == 0
        self.kills[target] += 1
        if target != "no worker":
            self.end_worker(signal.SIGKILL)
        self.start_worker()
        if success and job not in lines(self.notes / "effects"):
            self.check(int(job[1:]) % 2 == 1 or job not in self.held(), job, "was resolved, and is held")

    def resolve(self):
        command = self.directory / "pay"
        command.write_text(HANDLER)
        command.chmod(0o700)
        self.configure("pay", command, {"PATH": "/usr/bin:/bin", "NOTES": str(self.notes)}, concurrency=4, external=True,
                       policy="hold", owner="kim")
        self.start_worker()
        jobs, number = [], 0
        while self.kills_left():
            some = [{"operation_id": f"p{number + more}", "type": "pay", "cents": 1} for more in range(10)]
            number += len(some)
            jobs += some
            ids = {job["operation_id"] for job in some}
            sender = self.send(self.write_jobs("some.jsonl", some), "--ask-again", "200ms", "--deadline", "10m")
            if not self.await_that(lambda: self.held() == ids, "all held"):
                return {}
            for job in sorted(ids):
                self.resolve_and_kill(job)
            for job in sorted(self.held()):
                code, told = self.command(*self.resolve_words(job))
                self.check(code == 0, "resolve failed:", told)
            self.await_that(lambda: sender.poll() is not None or self.resolve_rest(), "all settled")
            self.check(sender.poll() in (0, 75), "the sender ended with", sender.poll())
        self.end_worker(signal.SIGTERM)
        return self.check_resolved(jobs)

    def resolve_rest(self):
        """A job may be held again, where its handler was killed with its worker."""
        for job in sorted(self.held()):
            self.command(*self.resolve_words(job))
        return False

    def check_resolved(self, jobs):
        effects = collections.Counter(lines(self.notes / "effects"))
        runs = collections.Counter(lines(self.notes / "runs"))
        told = collections.Counter(line["operation_id"] for line in self.settled() if line["outcome"] in ("stored", "duplicate"))
        audits = collections.Counter(row["operation_id"] for row in self.command("audit", "--data", self.data)[1])
        for job in (job["operation_id"] for job in jobs):
            even = int(job[1:]) % 2 == 0
            self.check(told[job] == 1, job, "was told", told[job], "times")
            self.check(effects[job] == (0 if even else 1), job, "had", effects[job], "effects")
            self.check(audits[job] >= 1 and (not even or audits[job] == 1), job, "was resolved", audits[job], "times")
            self.check(runs[job] <= audits[job] + 1, job, "ran", runs[job], "times after", audits[job], "resolutions")
            result = self.command("get", job, "--type", "pay", "--data", self.data)[1][0].get("result")
            self.check(result == ("receipt" if even else "done"), job, "has result", result)
        counts = self.command("count", "--data", self.data)[1][0]
        self.check(counts["results"] == len(jobs) and counts["pending"] == 0 and counts["dead_letters"] == 0, "counts", counts)
        self.check_verified()
        return {"jobs": len(jobs), "results": counts["results"], "effects": sum(effects.values()), "audits": sum(audits.values())}

    # --- Outboxes

    def resume(self):
        self.start_worker()
        jobs, round_number = 0, 0
        while self.kills_left():
            round_number += 1
            some = [{"operation_id": f"r{round_number}-{more}", "numbers": [round_number, more]} for more in range(400)]
            jobs += len(some)
            outbox = ["--outbox", self.directory / f"outbox-{round_number}", "--window", "16"]
            path = self.write_jobs("some.jsonl", some)
            self.end_worker(signal.SIGKILL)  # nobody takes the jobs, so all of them stay in the outbox
            self.check(self.send(path, *outbox, "--deadline", "3s").wait(timeout=PATIENCE_S) == 75, "filling the outbox")
            self.start_worker()
            self.resume_until_empty(outbox)
            told = collections.Counter(line["operation_id"] for line in self.settled())
            missing = [job["operation_id"] for job in some if told[job["operation_id"]] == 0]
            self.check(not missing, "never told:", missing[:5])
        self.end_worker(signal.SIGTERM)
        for line in self.settled():
            first, second = line["operation_id"][1:].split("-")
            self.check(line["outcome"] in ("stored", "duplicate") and line["result"] == int(first) + int(second), "wrong:", line)
        counts = self.command("count", "--data", self.data)[1][0]
        self.check(counts["results"] == jobs and counts["dead_letters"] == 0, "counts", counts, "of", jobs)
        self.check_verified()
        return {"jobs": jobs, "results": counts["results"], "told": len(self.settled())}

    def resume_until_empty(self, outbox):
        """Twelve lives that end by a kill, then one that ends by itself."""
        for _ in range(12):
            step = self.chance.choice((*SENDER_STEPS, "random"))
            more = [] if step == "random" else ["--kill-at", f"{step}:{self.chance.randint(1, 4)}"]
            sender = self.send("-", *outbox, "--deadline", "1m", *more)
            if step == "random":
                time.sleep(self.chance.uniform(0, 0.15))
                sender.kill()
            code = sender.wait(timeout=PATIENCE_S)
            if code == 0:
                return
            self.check(code == -signal.SIGKILL, "the sender ended with", code)
            self.kills[step] += 1
        self.check(self.send("-", *outbox, "--deadline", "1m").wait(timeout=PATIENCE_S) == 0, "the last life of an outbox")

    # --- Openings

    def kill_opening(self):
        call, arrivals_max = self.chance.choice((*OPENING_CALLS.items(), (None, 1), (None, 1)))
        words = self.worker_words()
        if call is not None:
            words = ["strace", "-f", "-o", self.directory / "trace", "-e", f"trace={call}", "-e",
                     f"inject={call}:signal=SIGKILL:when={self.chance.randint(1, arrivals_max)}", *words]
        opening = begin(*words, stdout=subprocess.PIPE, stderr=self.log)
        if call is None:
            time.sleep(self.chance.uniform(0, 0.1))
            opening.kill()
        ready = opening.stdout.readline() != ""
        if ready and call is not None:  # it has met the call less often than that
            traced = pathlib.Path(f"/proc/{opening.pid}/task/{opening.pid}/children").read_text().split()
            os.kill(int(traced[0]), signal.SIGKILL)
        opening.communicate(timeout=PATIENCE_S)
        if not ready:
            self.kills[call or "random"] += 1

    def opening(self):
        """Bad jobs of 900 kB fill memtables, so that complete logs lie beside the newest."""
        jobs, bad, round_number = 0, 0, 0
        while self.kills_left():
            round_number += 1
            some = [{"operation_id": f"o{round_number}-{more}", "numbers": [more]} for more in range(60)]
            bad_job = {"operation_id": f"bad{round_number}", "numbers": [1], "extra": "x" * 900_000}
            if not self.start_worker():
                self.check(False, "the worker did not open its store")
                break
            code = self.send(self.write_jobs("some.jsonl", [*some, bad_job]), "--deadline", "1m").wait(timeout=PATIENCE_S)
            self.check(code == 1, "sending ended with", code)
            jobs, bad = jobs + len(some), bad + 1
            self.end_worker(signal.SIGKILL)
            for _ in range(5):
                self.kill_opening()
        self.start_worker()
        before = len(self.settled())
        resent = [{"operation_id": f"o{first}-{more}", "numbers": [more]} for first in range(1, round_number + 1)
                  for more in range(60)][:jobs]
        code = self.send(self.write_jobs("all.jsonl", resent), "--deadline", "1m").wait(timeout=PATIENCE_S)
        self.check(code == 0, "sending all again ended with", code)
        outcomes = collections.Counter(line["outcome"] for line in self.settled()[before:])
        self.check(outcomes == {"duplicate": jobs}, "not all were there:", outcomes)
        self.end_worker(signal.SIGTERM)
        counts = self.command("count", "--data", self.data)[1][0]
        self.check(counts["results"] == jobs and counts["dead_letters"] == bad, "counts", counts, "of", jobs, bad)
        self.check_verified()
        return {"jobs": jobs, "results": counts["results"], "dead_letters": counts["dead_letters"]}

    def figures(self):
        return getattr(self, self.options.campaign)()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=("resolve", "resume", "opening"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    return AimedCampaign(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())

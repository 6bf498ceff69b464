#!/usr/bin/python3
"""Kills workers while their handlers run, again and again, and holds what is left against what must be: each job ends once, the
sender is told how, no attempt runs twice, nothing runs beside itself, and effects at a provider are as many as the keys.

Does not show: power loss (tests/power) and what a handler does to itself. The choices of a seed are repeated; when processes die
within them varies.

Usage: campaign.py [--kills N] [--jobs N] [--seed N] queued|retry|query
  queued  a handler that sleeps, fails in three runs of ten and dies; the worker is killed every two seconds, by turns at random and
          at each of its declared steps
  retry   an external handler at an idempotent provider, the worker killed during calls
  query   the same at a provider that is not idempotent, and is asked

Prints a JSON line of figures. Exit 0: all held; 1: not, and the directory is kept.
"""
import argparse
import collections
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from campaigns import Campaign, ONCED, PATIENCE_S, ROOT, begin, lines  # noqa: E402

MAX_RECEIVES = 5


class HandlerCampaign(Campaign):
    def __init__(self, options):
        super().__init__(options)
        self.effects = self.directory / "effects.jsonl"

    # --- The processes

    def start_provider(self, *options):
        self.provider = begin(ROOT / "tools/fake-provider", "--state", self.effects, *options, stdout=subprocess.PIPE)
        return json.loads(self.provider.stdout.readline())["url"]

    def start_sender(self, jobs):
        return begin(ONCED, "send", self.write_jobs("jobs.jsonl", jobs), *self.endpoints, "--ask-again", "300ms", "--deadline", "30m",
                     stdout=open(self.directory / "settled.jsonl", "w"), stderr=self.log)

    # --- The kills

    def points(self):
        text = subprocess.run([str(ONCED), "serve", "--help"], capture_output=True, text=True, check=True).stdout
        return sorted(set(re.findall(r"\bqueue\.[a-z-]+", text)))

    def kill_by_turns(self, sender):
        """Every two seconds: at random, or at the next declared step, which may come earlier."""
        turns = [None, *self.points()]
        alive = self.start_worker()
        while sender.poll() is None:
            turn = turns[sum(self.kills.values()) % len(turns)]
            if turn is not None and alive:
                self.end_worker(signal.SIGKILL)
                alive = self.start_worker("--kill-at", f"{turn}:{self.chance.randint(1, 40)}")
            until = time.monotonic() + 2 * self.chance.uniform(0.5, 1)
            while time.monotonic() < until and sender.poll() is None and self.worker.poll() is None:
                time.sleep(0.01)
            self.kills[turn if self.worker.poll() is not None else "random"] += 1
            self.end_worker(signal.SIGKILL)
            alive = self.start_worker()

    def kill_during_calls(self, sender):
        """Each time that calls were made since the last kill, while one may be under way."""
        self.start_worker()
        seen = 0
        while sum(self.kills.values()) < self.options.kills and sender.poll() is None:
            calls = lines(self.notes / "calls")
            if len(calls) > seen:
                seen = len(calls)
                time.sleep(self.chance.uniform(0, 0.15))
                self.end_worker(signal.SIGKILL)
                self.kills["during a call"] += 1
                self.start_worker()
            time.sleep(0.002)
        self.await_progress(sender)

    def await_progress(self, sender):
        """Until the sender has ended, or has learned nothing for so long."""
        told, deadline = 0, time.monotonic() + PATIENCE_S
        while sender.poll() is None and time.monotonic() < deadline:
            count = len(lines(self.directory / "settled.jsonl"))
            if count > told:
                told, deadline = count, time.monotonic() + PATIENCE_S
            time.sleep(0.05)

    # --- What must hold

    def check_settled(self, jobs):
        settled = [json.loads(line) for line in lines(self.directory / "settled.jsonl")]
        outcomes = collections.Counter(line["outcome"] for line in settled)
        told = collections.Counter(line["operation_id"] for line in settled)
        self.check(told == collections.Counter(job["operation_id"] for job in jobs), "not each job was told once:", len(told))
        code, counts = self.command("count", "--data", self.data)
        counts = counts[0] if counts else {}
        self.check(code == 0, "count failed", counts)
        self.check(counts.get("results") == outcomes["stored"] + outcomes["duplicate"], "results", counts, outcomes)
        self.check(counts.get("dead_letters") == outcomes["failed"], "dead letters", counts, outcomes)
        self.check(counts.get("results", 0) + counts.get("dead_letters", 0) == len(jobs), "not every job has ended", counts)
        self.check(counts.get("pending", 0) == 0, "some are still queued", counts)
        code, problems = self.command("verify", "--data", self.data)
        self.check(code == 0, "verify:", problems)
        return counts

    def check_runs(self):
        runs = [line.split() for line in lines(self.notes / "runs")]
        attempts = collections.defaultdict(list)
        for job, attempt, token in runs:
            attempts[job].append((int(attempt), token))
        for job, made in attempts.items():
            self.check(all(left < right for left, right in zip(made, made[1:])), "attempts or tokens do not grow:", job, made)
            self.check(made[-1][0] <= MAX_RECEIVES, "too many attempts:", job, made)
        tokens = [token for _, _, token in runs]
        self.check(len(set(tokens)) == len(tokens), "a token was used twice")
        self.check(not lines(self.notes / "beside-itself"), "ran beside itself:", lines(self.notes / "beside-itself"))
        return len(runs)

    def check_effects(self, jobs):
        keys = collections.Counter(json.loads(line)["key"] for line in lines(self.effects))
        self.check(len(keys) == len(jobs), "not one key a job:", len(keys))
        self.check(all(count == 1 for count in keys.values()), "double effects:", [key for key in keys if keys[key] > 1])
        return sum(keys.values())

    # --- The campaigns

    def queued(self):
        self.configure("work", ROOT / "tests/handlers/handler.sh",
                       {"PATH": "/usr/bin:/bin", "NOTES": str(self.notes), "SEED": str(self.options.seed)}, concurrency=8,
                       **{"max-receive-count": MAX_RECEIVES})
        jobs = [{"operation_id": f"j{number}", "type": "work", "number": number} for number in range(self.options.jobs)]
        sender = self.start_sender(jobs)
        self.kill_by_turns(sender)
        self.end_worker(signal.SIGTERM)
        counts = self.check_settled(jobs)
        return {"runs": self.check_runs(), "results": counts.get("results"), "dead_letters": counts.get("dead_letters")}

    def external(self, policy, *provider):
        url = self.start_provider(*provider)
        wrapper = self.directory / "charge"
        wrapper.write_text(f'#!/bin/sh\necho "$ONCED_OPERATION_ID" >> "{self.notes}/calls"\nexec "{ROOT}/tools/handlers/charge.py"\n')
        wrapper.chmod(0o700)
        more = {"reconcile": [str(ROOT / "tools/handlers/charge_reconcile.py")]} if policy == "query" else {}
        # Kills are far more than a job's receives: this is about effects, not about giving up.
        self.configure("charge", wrapper, {"PATH": "/usr/bin:/bin", "PROVIDER_URL": url}, concurrency=4, external=True, policy=policy,
                       owner="campaign", **more | {"max-receive-count": 1000})
        jobs = [{"operation_id": f"c{number}", "type": "charge", "account": "a", "cents": number + 1} for number in range(self.options.jobs)]
        sender = self.start_sender(jobs)
        self.kill_during_calls(sender)
        self.check(sender.poll() == 0, "the sender has not ended")
        self.end_worker(signal.SIGTERM)
        self.check_settled(jobs)
        self.provider.kill()
        self.provider.communicate()
        return {"effects": self.check_effects(jobs), "calls": len(lines(self.notes / "calls"))}

    def figures(self):
        if self.options.campaign == "queued":
            figures = self.queued()
        elif self.options.campaign == "retry":
            figures = self.external("retry", "--idempotent", "--late", "30")
        else:
            figures = self.external("query", "--not-idempotent", "--late", "30")
        return {"jobs": self.options.jobs, **figures}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=("queued", "retry", "query"))
    parser.add_argument("--kills", type=int, default=200, help="during calls (retry, query)")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    return HandlerCampaign(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())

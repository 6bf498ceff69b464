#!/usr/bin/python3
"""Charges an account at the provider under $PROVIDER_URL. Payload: {"account":"NAME","cents":AMOUNT}; result: what the provider
answers. A handler to copy, of a type with `external = true` (docs/handlers.md)."""
import json, os, signal, sys, urllib.error, urllib.request

REFUSED, NOTHING_DONE = 65, 75
TIMEOUT_S = 8  # less than the grace period

def is_charge(payload):
    if set(payload) != {"account", "cents"}:
        return False
    account, cents = payload["account"], payload["cents"]
    return isinstance(account, str) and account != "" and type(cents) is int and cents > 0

def charge(payload):
    headers = {"Content-Type": "application/json", "Idempotency-Key": os.environ["ONCED_IDEMPOTENCY_KEY"],
               "Fencing-Token": os.environ["ONCED_FENCING_TOKEN"]}
    request = urllib.request.Request(os.environ["PROVIDER_URL"] + "/effects", json.dumps(payload).encode(), headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)

def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # when the worker stops: the call is brought to its end, within the grace period
    payload = json.load(sys.stdin.buffer)
    if not is_charge(payload):
        print('the payload is not {"account":"NAME","cents":AMOUNT}', file=sys.stderr)
        return REFUSED
    try:
        print(json.dumps(charge(payload)))
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError):
            raise  # any other exit code: it may have been charged
        print("the provider does not listen, so nothing was sent", file=sys.stderr)
        return NOTHING_DONE

if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Asks the provider under $PROVIDER_URL what became of an earlier call of charge.py, and says so as the policy `query` wants it
(docs/handlers.md). Whatever goes wrong is an exception: then it stays unknown."""
import json, os, urllib.error, urllib.request

TIMEOUT_S = 8

def main():
    url = os.environ["PROVIDER_URL"] + "/effects/" + os.environ["ONCED_IDEMPOTENCY_KEY"]
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            print(json.dumps({"effect": "applied", "result": json.load(answer)["answer"]}))
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        print(json.dumps({"effect": "absent"}))

if __name__ == "__main__":
    main()

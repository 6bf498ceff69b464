#!/usr/bin/env python3
"""Holds every number that a benchmark's --help shows to its range: what is no number in it is refused, by name.

Usage: bench/options_test.py PROGRAM…
"""
import pathlib
import re
import subprocess
import sys

NUMBERS = ("UINT", "INT", "FLOAT", "SIZE")
NONE = ["-1", "18446744073709551616", "0x10", " 1", "nan", "1 ", "ten"]


def options_of(program):
    """Each option with the type of its value."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (?:-\w,)?(--[a-z-]+)(?:,--[a-z-]+)* ([A-Z]+)", text, re.MULTILINE)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    wrong, numbers = [], 0
    for program in sys.argv[1:]:
        for name, kind in options_of(program):
            if kind not in NUMBERS:
                continue
            numbers += 1
            for value in NONE:
                # Not a number either way, so it must be refused before anything runs.
                ran = subprocess.run([program, f"{name}={value}"], capture_output=True, text=True, timeout=60, check=False)
                if ran.returncode == 0 or f"{name}: " not in ran.stderr + ran.stdout:
                    wrong.append(f"{pathlib.Path(program).name} {name}={value!r}: {ran.returncode}: {ran.stderr[:200]}")
    print("\n".join(wrong + [f"{numbers} numbers, {len(wrong)} values taken that are none"]))
    return 1 if wrong or numbers == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

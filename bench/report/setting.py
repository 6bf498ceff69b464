"""What the figures of a run hold for: the machine, the file system, the versions."""
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys


def _lines(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _value(path, name):
    """Of a file of NAME: VALUE lines."""
    for line in _lines(path):
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _output(*command):
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.strip().splitlines()[0] if run.stdout.strip() else None


def machine(directory, build=None):
    """A row of the machine now. `directory` is what is written to, `build` a folder that CMake has configured."""
    memory = _value("/proc/meminfo", "MemTotal")
    compiler = _cached(build, "CMAKE_CXX_COMPILER") if build else None
    return {
        "bench": "machine",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu_model": _value("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": os.cpu_count(),
        "memory_mib": int(memory.split()[0]) // 1024 if memory else None,
        "kernel": platform.release(),
        "file_system": _output("stat", "--file-system", "--format=%T", directory),
        "device": _output("findmnt", "--noheadings", "--output=SOURCE", "--target", directory),
        "compiler": _output(compiler, "--version") if compiler else None,
        "rocksdb_root": (_cached(build, "ONCED_ROCKSDB_ROOT") or None) if build else None,
    }


def _cached(build, name):
    for line in _lines(pathlib.Path(build, "CMakeCache.txt")):
        if line.startswith(name + ":"):
            return line.partition("=")[2]
    return None


def _values(rows, field):
    return sorted({row[field] for row in rows if row.get(field) is not None})


def describe(rows):
    """Of all rows of a run, in a fixed order; null: no row says it."""
    here = next((row for row in rows if row["bench"] == "machine"), {})
    setting = {field: here.get(field)
               for field in ("date", "cpu_model", "cores", "memory_mib", "kernel", "file_system", "device", "compiler", "rocksdb_root")}
    for field in ("onced", "build_type", "rocksdb", "rocksdb_asserts", "libzmq", "openssl", "msgpack", "cores"):
        values = _values(rows, field)
        setting[field] = values[0] if values else setting.get(field)
    setting["peers"] = _values([row for row in rows if row["bench"] == "peers"], "version")
    setting["durability"] = _values(rows, "durability")
    setting["seeds"] = _values(rows, "seed")
    setting["rounds"] = max((row.get("round", row.get("repeat", 1)) for row in rows), default=0)
    return setting


if __name__ == "__main__":
    print(json.dumps(machine(*sys.argv[1:])))

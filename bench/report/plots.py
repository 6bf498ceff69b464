"""Plots as SVG, by the gnuplot scripts beside this file. What there are no rows for is not drawn."""
import pathlib
import subprocess
import tempfile

import choice
import tables
from choice import APPEND_ONE, OPEN_LOOP

# The line style of each series, as style.gp defines them: the same in every plot.
STYLES = {"onced": 1, "redis-fed": 2, "redis-stream": 3, "postgresql-fed": 4, "postgresql-queue": 5, "sqlite": 6}
STYLES.update({words: style for style, words in enumerate(tables.LIMIT_WORDS.values(), start=11)})
QUANTILES = (("p50", 1), ("p99", 2), ("p999", 4))


class Failed(Exception):
    """gnuplot is not here, or refused."""


def _quote(text):
    return "'" + str(text).replace("'", "''") + "'"


def _block(title, points):
    """A series as gnuplot reads it: its title, then x, median, least and most."""
    lines = [f'"{title}"']
    lines += [f"{x} {spread.median:.6g} {spread.least:.6g} {spread.most:.6g}" for x, spread in points if spread is not None]
    return "\n".join(lines)


def _by_share(rows, figure_of):
    shares = tables.shares_of([row for _, of, _ in tables.series(rows) for row in of])
    lines = []
    for name, of, cpu in tables.series(rows):
        points = [(at, tables.best_at(of, share, figure_of(cpu))) for at, share in enumerate(shares)]
        lines.append((name, STYLES.get(name, 7), points))
    return lines, ", ".join(f'"{share * 100:g} %%" {at}' for at, share in enumerate(shares))  # a label is a format


def throughput(rows):
    lines, ticks = _by_share(rows, lambda _: tables.RATE)
    return lines, {"ticks": ticks}


def cpu(rows):
    lines, ticks = _by_share(rows, lambda fields: fields)
    return lines, {"ticks": ticks}


def latency(rows):
    open_loop = choice.where(rows, OPEN_LOOP)
    loads = sorted({row["load"] for row in open_loop})
    lines, append = [], choice.where(rows, APPEND_ONE)
    for quantile, style in QUANTILES if loads else ():
        words = quantile.replace("p999", "p99.9")
        points = [(load * 100, choice.spread(choice.where(open_loop, {"load": load}), f"acknowledgement_{quantile}_us")) for load in loads]
        lines.append((f"onced, {words}", style, points))
        limit = choice.spread(append, f"batch_{quantile}_us")
        lines.append((f"limit: one append, {words}", style + 20, [(loads[0] * 100, limit), (loads[-1] * 100, limit)]))
    return lines, {"ticks": ", ".join(f'"{load * 100:g}" {load * 100:g}' for load in loads)}


def _by_keys(rows, field):
    scale = choice.where(rows, {"bench": "scale"})
    sizes = sorted({row["size"] for row in scale})
    lines = [(words, style, [(size, choice.spread(choice.where(scale, {"measure": name, "size": size}), field)) for size in sizes])
             for name, words, style in (("hot", "hot duplicates", 1), ("cold", "cold duplicates", 2), ("absent", "absent keys", 4))]
    return lines, {"ticks": ", ".join(f'"{size / 1e6:g} M" {size}' for size in sizes)}


def keys_cpu(rows):
    return _by_keys(rows, "cpu_us_per_delivery")


def keys_reads(rows):
    return _by_keys(rows, "block_reads_per_delivery")


# Each by the script of its name, to a file of its name.
PLOTS = {"throughput": throughput, "cpu": cpu, "latency": latency, "keys-cpu": keys_cpu, "keys-reads": keys_reads}


def _gnuplot(script):
    try:
        run = subprocess.run(["gnuplot"], input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
    except OSError as error:
        raise Failed("gnuplot cannot be started; --without-plots leaves it out") from error
    if run.returncode != 0:
        raise Failed(f"gnuplot: {run.stdout.strip()}")


def draw(rows, out, terminal="svg"):
    """Returns the names of the files written."""
    rows = [row for row in rows if row.get("part") != "grid"]
    here, written = pathlib.Path(__file__).resolve().parent, []
    for name, make in PLOTS.items():
        lines, variables = make(rows)
        lines = [line for line in lines if any(spread is not None for _, spread in line[2])]
        if not lines:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".dat", encoding="utf-8") as data:
            data.write("\n\n\n".join(_block(title, points) for title, _, points in lines) + "\n")
            data.flush()
            variables = {"data": data.name, "styles": " ".join(str(style) for _, style, _ in lines), "kind": terminal,
                         "target": out.resolve() / f"{name}.{terminal}", **variables}
            settings = "".join(f"{key} = {_quote(value)}\n" for key, value in variables.items())
            _gnuplot(settings + f"cd {_quote(here)}\nload {_quote(name + '.gp')}\n")
        written.append(f"{name}.{terminal}")
    return written

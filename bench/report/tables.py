"""Markdown for people: the targets, and the figures by share, by depth, by load and by keys."""
import choice
from choice import APPEND_ONE, LIMITS, ONCED, OPEN_LOOP, PEERS, onced_at, peers_at

RATE = "deliveries_per_second"
PEER_CPU = ("server_cpu_us_per_delivery", "client_cpu_us_per_delivery")
LIMIT_WORDS = {
    "pipe": "limit: bare ZeroMQ pipe",
    "append": "limit: append and fdatasync",
    "write-batch": "limit: WriteBatch, no guard",
    "guard": "limit: commit path",
    "guard-parsed": "limit: commit path with parsing",
}


def number(value):
    """Three significant digits at least, thousands apart."""
    if value is None:
        return "–"
    if abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 4}f}"


def with_range(spread):
    if spread is None:
        return "–"
    if len(spread.by_round) == 1:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.least)} to {number(spread.most)})"


def table(header, lines):
    """A Markdown table; the first column is words, the others are numbers."""
    rule = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *lines]) + "\n"


def percent(share):
    return f"{share * 100:g} %"


def shares_of(rows):
    return sorted({row["share"] for row in rows if row["bench"] in ("throughput", "limits", "peers")})


def names_of(rows, field):
    return list(dict.fromkeys(row[field] for row in rows if field in row))


def series(rows):
    """Who is compared by share: a name, its rows, and the fields of its CPU time; of threads, all."""
    who = [("onced", choice.where(rows, ONCED), "worker_cpu_us_per_delivery")]
    for peer in names_of(rows, "peer"):
        who.append((peer, choice.where(rows, {**PEERS, "peer": peer}), PEER_CPU))
    for name, words in LIMIT_WORDS.items():
        who.append((words, choice.where(rows, {**LIMITS, "limit": name}), "cpu_us_per_delivery"))
    return [entry for entry in who if entry[1]]


def best_at(rows, share, figure=RATE, fields=("threads",)):
    """The spread of a figure at a share, of the best of the threads (or other fields) where there are several."""
    at_share = choice.where(rows, {"share": share})
    present = tuple(field for field in fields if all(field in row for row in at_share))
    found, _ = choice.best(at_share, RATE, present)
    return choice.spread(found, figure)


def by_share(rows):
    shares = shares_of(rows)
    rates = [[name] + [with_range(best_at(of, share)) for share in shares] for name, of, _ in series(rows)]
    cpu = [[name] + [with_range(best_at(of, share, field)) for share in shares] for name, of, field in series(rows)]
    header = [percent(share) for share in shares]
    return ("Deliveries a second, by share of duplicates: median (least to most).\n\n" + table(["", *header], rates)
            + "\nCPU, µs a delivery: onced's worker; server and client of a peer; the process of a limit.\n\n" + table(["", *header], cpu))


def of_depth(rows, depth):
    """Who is compared with so many deliveries unanswered: a name and its rows."""
    who = [("onced", choice.where(rows, onced_at(depth)))]
    who += [(peer, choice.where(rows, {**peers_at(depth), "peer": peer})) for peer in names_of(rows, "peer")]
    return [entry for entry in who if entry[1]]


def by_depth(rows):
    text = ""
    for depth in (100, 1):
        who = of_depth(rows, depth)
        shares = shares_of([row for _, of in who for row in of])
        lines = [[name] + [with_range(best_at(of, share, fields=("per_message",))) for share in shares] for name, of in who]
        text += f"\n{depth} in flight: deliveries a second, by share of duplicates.\n\n" + table(["", *map(percent, shares)], lines)
    return text.lstrip()


def by_load(rows):
    quantiles = ("p50", "p99", "p999")
    open_loop = choice.where(rows, OPEN_LOOP)
    lines = []
    for load in sorted({row["load"] for row in open_loop}):
        at_load = choice.where(open_loop, {"load": load})
        lines.append([f"onced, load {percent(load)}", with_range(choice.spread(at_load, "rate"))]
                     + [with_range(choice.spread(at_load, f"acknowledgement_{quantile}_us")) for quantile in quantiles])
    append = choice.where(rows, APPEND_ONE)
    if append:
        lines.append(["limit: one append and fdatasync", with_range(choice.spread(append, RATE))]
                     + [with_range(choice.spread(append, f"batch_{quantile}_us")) for quantile in quantiles])
    return ("New jobs on a schedule, latency from the scheduled time.\n\n"
            + table(["", "deliveries/s", "p50, µs", "p99, µs", "p99.9, µs"], lines))


def by_keys(rows):
    traffics, reopenings, settled = [], [], []
    scale = choice.where(rows, {"bench": "scale"})
    for size in sorted({row["size"] for row in scale}):
        of = {name: choice.where(scale, {"size": size, "measure": name}) for name in names_of(scale, "measure")}
        for name in ("hot", "cold", "absent"):
            figures = ("cpu_us_per_delivery", "block_reads_per_delivery", "disk_read_bytes_per_delivery", "resident_max_mib", "bound_mib")
            traffics.append([f"{number(size)}, {name}"] + [with_range(choice.spread(of.get(name, []), field)) for field in figures])
        figures = ("store_open_ms", "bare_open_ms", "log_bytes_replayed")
        reopenings.append([number(size)] + [with_range(choice.spread(of.get("open_after_kill", []), field)) for field in figures])
        figures = ("fill_s", "disk_bytes", "pending_compaction_after_fill_bytes", "pending_compaction_bytes")
        settled.append([number(size)] + [with_range(choice.spread(of.get("settled", []), field)) for field in figures])
    return (table(["keys", "CPU, µs a delivery", "block reads a delivery", "bytes from disk a delivery", "most memory, MiB", "its bound, MiB"], traffics)
            + "\n" + table(["keys", "open after kill -9, ms", "bare open, ms", "log replayed, bytes"], reopenings)
            + "\n" + table(["keys", "fill, s", "on disk, bytes", "compaction debt after the fill, bytes", "when idle"], settled))


def peer_settings(rows):
    lines = []
    for row in {(row["peer"], row["share"], row["in_flight_limit"]): row for row in choice.where(rows, {"bench": "peers"})}.values():
        depth, found = row["in_flight_limit"], row.get("settings_share")
        lines.append([f"{row['peer']}, {percent(row['share'])}, {f'{depth} in flight' if depth else 'free'}", f"{row['batch']}",
                      f"{row['connections']}", f"{row['in_flight']}", "first" if row.get("look_first") else "no",
                      "by hand" if found is None else f"sweep at {percent(found)}"])
    return table(["", "batch", "connections", "in flight", "look", "found by"], lines)


def by_message(grid):
    """The grid: onced by deliveries a message, one run a cell."""
    lines = []
    for durability in names_of(grid, "durability"):
        for workers in names_of(grid, "workers"):
            for per_message in names_of(grid, "per_message"):
                of = choice.where(grid, {"durability": durability, "workers": workers, "per_message": per_message})
                rates = [with_range(best_at(of, share)) for share in shares_of(grid)]
                lines.append([f"{durability}, {workers} workers, {per_message} a message", *rates])
    return table(["", *map(percent, shares_of(grid))], lines)


def parts(rows):
    lines = [[f"`{row['name']}`", number(row["cpu_ns"]), number(row.get("items_per_second"))] for row in choice.where(rows, {"bench": "micro"})]
    return table(["", "CPU, ns an iteration", "deliveries a second"], lines)


def document(rows):
    """All tables that there are rows for."""
    grid = choice.where(rows, {"part": "grid"})
    rows = [row for row in rows if row.get("part") != "grid"]
    sections = [("By share of duplicates", series(rows), lambda: by_share(rows)),
                ("By deliveries in flight", of_depth(rows, 100) + of_depth(rows, 1), lambda: by_depth(rows)),
                ("By load", choice.where(rows, OPEN_LOOP), lambda: by_load(rows)),
                ("By keys", choice.where(rows, {"bench": "scale"}), lambda: by_keys(rows)),
                ("By message size", grid, lambda: by_message(grid)),
                ("Parts", choice.where(rows, {"bench": "micro"}), lambda: parts(rows)),
                ("Settings of the peers", choice.where(rows, {"bench": "peers"}), lambda: peer_settings(rows))]
    return "\n".join(f"## {title}\n\n{make()}" for title, there, make in sections if there)


def _figure_words(figure):
    if figure is None:
        return "–"
    shown = ", ".join(str(value) if key == "peer" else f"{key.replace('_', ' ')} {number(value) if value > 999 else value}"
                      for key, value in figure["of"].items())
    return f"{figure['words']}{f' ({shown})' if shown else ''}: {number(figure['median'])} {figure['unit']}".rstrip()


def _value_words(result, key):
    value = result[key]
    if value is None:
        return "–"
    if result["per_cent"]:
        return f"{value * 100:.0f} %"
    return f"{value:.2f} ×" if result["denominator"] else number(value)


def target_lines(results):
    """One line a target, as words."""
    lines = []
    for result in results:
        bound = f"{result['bound'] * 100:g} %" if result["per_cent"] else f"{result['bound']:g}"
        value = _value_words(result, "value")
        if result["least"] is not None and result["least"] != result["most"]:
            value += f" ({_value_words(result, 'least')} to {_value_words(result, 'most')})"
        lines.append([result["target"], f"{result['sense']} {bound}", value, _figure_words(result["numerator"]),
                      _figure_words(result["denominator"]), result["verdict"]])
    return lines


TARGET_HEADER = ["target", "bound", "ratio of medians (range)", "numerator", "denominator", "verdict"]


def targets_document(results):
    return table(TARGET_HEADER, target_lines(results))


def targets_text(results):
    """For a terminal: a line a target, its figures below it."""
    text = ""
    for name, bound, value, numerator, denominator, verdict in target_lines(results):
        text += f"{verdict:<12}  {name}: {value}, {bound}\n"
        if verdict != "not measured":
            text += f"{'':<14}{numerator}{f' / {denominator}' if denominator != '–' else ''}\n"
    return text

"""Each cell (rows that differ in nothing that was set) with the minimum, median and maximum of its figures."""
import choice

SET = {
    "throughput": ("part", "share", "per_message", "durability", "workers", "in_flight", "mode", "load", "deliveries", "conflicts", "seed"),
    "limits": ("part", "limit", "share", "batch", "threads", "deliveries", "seed"),
    "peers": ("part", "peer", "share", "batch", "connections", "in_flight", "in_flight_limit", "look_first", "settings_share",
              "deliveries", "conflicts", "seed"),
    "scale": ("measure", "size", "batch", "deliveries", "seed"),
    "micro": ("name",),
}
NOT_FIGURES = {"repeat", "round", "cores", "distinct", "preloaded", "keys", "seed"}


def _is_figure(field, row):
    value = row[field]
    return field not in NOT_FIGURES and field not in SET[row["bench"]] and isinstance(value, (int, float)) and not isinstance(value, bool)


def reduce(rows):
    """In the order in which the cells came."""
    groups = {}
    for row in rows:
        if row["bench"] in SET:
            key = (row["bench"],) + tuple(row.get(field) for field in SET[row["bench"]])
            groups.setdefault(key, []).append(row)
    cells = []
    for key, group in groups.items():
        fields = dict.fromkeys(field for row in group for field in row if _is_figure(field, row))
        cells.append({
            "bench": key[0],
            **{field: value for field, value in zip(SET[key[0]], key[1:]) if value is not None},
            "runs": len(group),
            "figures": {field: choice.spread(group, field).as_json() for field in fields},
        })
    return cells

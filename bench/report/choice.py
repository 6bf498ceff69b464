"""Chooses rows by what was set, and reduces a figure of them over the rounds."""
import dataclasses
import statistics

from rows import round_of

LARGEST = object()  # as a wanted value: the largest that the other rows chosen have

# What the report is about, by share of duplicates.
ONCED = {"bench": "throughput", "mode": "closed", "per_message": 256, "durability": "fsync", "workers": 2, "in_flight": 8192}
PEERS = {"bench": "peers", "in_flight_limit": None}
LIMITS = {"bench": "limits", "batch": 256}
APPEND_ONE = {"bench": "limits", "limit": "append-one"}
OPEN_LOOP = {**ONCED, "mode": "open", "share": 0}


def onced_at(in_flight):
    return {"bench": "throughput", "mode": "closed", "durability": "fsync", "workers": 2, "in_flight": in_flight}


def peers_at(in_flight):
    return {"bench": "peers", "in_flight_limit": in_flight}


def where(rows, wanted):
    """The rows with exactly these values."""
    found = [row for row in rows if all(value is LARGEST or (key in row and row[key] == value) for key, value in wanted.items())]
    for key, value in wanted.items():
        if value is LARGEST and found:
            largest = max(row[key] for row in found)
            found = [row for row in found if row[key] == largest]
    return found


@dataclasses.dataclass(frozen=True)
class Spread:
    """A figure over the rounds."""

    by_round: dict

    @property
    def median(self):
        return statistics.median(self.by_round.values())

    @property
    def least(self):
        return min(self.by_round.values())

    @property
    def most(self):
        return max(self.by_round.values())

    def as_json(self):
        return {"minimum": self.least, "median": self.median, "maximum": self.most}

    def over(self, other):
        """Round by round, where both were measured."""
        common = self.by_round.keys() & other.by_round.keys()
        return Spread({number: self.by_round[number] / other.by_round[number] for number in sorted(common)})


def spread(rows, figure):
    """Of a field, or of a sum of fields. None where no row has it."""
    fields = (figure,) if isinstance(figure, str) else figure
    by_round = {}
    for row in rows:
        if all(row.get(field) is not None for field in fields):
            by_round.setdefault(round_of(row), []).append(sum(row[field] for field in fields))
    if not by_round:
        return None
    return Spread({number: statistics.median(values) for number, values in sorted(by_round.items())})


def best(rows, figure, fields):
    """Of the rows grouped by these fields, the group whose median is highest: its rows and spread. ([], None): there is none."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[field] for field in fields), []).append(row)
    measured = [(group, spread(group, figure)) for group in groups.values()]
    measured = [(group, of_group) for group, of_group in measured if of_group is not None]
    return max(measured, key=lambda pair: pair[1].median, default=([], None))

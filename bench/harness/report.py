"""What a run found: one table, the goals, and the same as JSON."""

import json
import statistics
from dataclasses import asdict, dataclass


@dataclass
class Goal:
    """A ratio that must not be above `at_most`, or not below `at_least`. With nothing to compare with (`against` is
    empty) a figure."""

    work: str
    against: str
    ratios: list
    at_most: float = None
    at_least: float = None

    @property
    def ratio(self):
        return statistics.median(self.ratios)

    @property
    def holds(self):
        return self.ratio <= self.at_most if self.at_most is not None else self.ratio >= self.at_least

    @property
    def bound(self):
        return f"≤ {self.at_most:.3g}" if self.at_most is not None else f"≥ {self.at_least:.3g}"


def print_table(columns, rows):
    """The first column to the left, the others to the right."""
    cells = [columns] + rows
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for n, row in enumerate(cells):
        line = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("| " + " | ".join(line) + " |")
        if n == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def spread(values, digits):
    return f"{min(values):.{digits}f}–{max(values):.{digits}f}"


def print_comparison(title, series, ours):
    print(f"\n### {title}\n")
    rows = []
    for one in series.values():
        cpu = one.values("cpu_us")
        ratio = statistics.median(a / b for a, b in zip(series[ours].values("cpu_us"), cpu))
        rows.append(
            [
                one.name,
                f"{one.median('cpu_us'):.2f}",
                spread(cpu, 2),
                "" if one.name == ours else f"{ratio:.2f}",
                f"{one.throughput / 1000:.1f}",
                f"{one.median('p50_us'):.0f}",
                f"{one.median('p99_us'):.0f}",
                f"{one.client_load:.2f}",
            ]
        )
    print_table(
        ["server", "CPU µs/call", "lowest–highest", f"{ours} ÷ it", "k calls/s", "p50 µs", "p99 µs", "client cores"],
        rows,
    )


def print_goals(goals, title="CPU (or time) as a multiple of the peer's"):
    print(f"\n### Goals: {title}\n")
    rows = [
        [
            f"{g.work} ÷ {g.against}" if g.against else g.work,
            f"{g.ratio:.2f}",
            spread(g.ratios, 2),
            g.bound,
            "holds" if g.holds else "MISSED",
        ]
        for g in goals
    ]
    print_table(["work", "ratio", "lowest–highest", "goal", ""], rows)


def samples_of(comparisons):
    """Every sample of comparisons of servers, for the JSON file."""
    return {
        title: {one.name: [asdict(sample) for sample in one.samples] for one in series.values()}
        for title, series in comparisons.items()
    }


def write_json(path, machine, mode, comparisons, goals):
    document = {
        "machine": machine,
        "mode": mode,
        "comparisons": comparisons,
        "goals": [{**asdict(goal), "ratio": goal.ratio, "holds": goal.holds} for goal in goals],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

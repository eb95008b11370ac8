#!/usr/bin/env python3
"""Draws the pictures of these pages: what each algorithm does with the same requests, decided by the reference model.

draw.py            writes NAME.svg beside this file
draw.py --check    says which differ from what it would write; exit code 1 then
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests/model/reference"))
import algorithms  # noqa: E402

MILLISECOND = 10**6
SECOND = 1000 * MILLISECOND
END = 8 * SECOND
STEP = 100 * MILLISECOND

# Twice the limit for two seconds; silence; 30 at once just before a second ends and 30 just after; then the limit itself.
REQUESTS = sorted([500 * MILLISECOND + n * 50 * MILLISECOND for n in range(40)] +
                  [3_950 * MILLISECOND] * 30 + [4_050 * MILLISECOND] * 30 +
                  [6 * SECOND + n * 100 * MILLISECOND for n in range(15)])

PICTURES = {
    "token_bucket": ("token bucket: 10 a second, burst 20", {"rate": 10, "period": SECOND, "burst": 20}),
    "leaky_bucket": ("leaky bucket: 10 a second, queue 10", {"rate": 10, "period": SECOND, "queue": 10}),
    "fixed_window": ("fixed window: 10 a second", {"rate": 10, "period": SECOND}),
    "sliding_window": ("sliding window: 10 a second", {"rate": 10, "period": SECOND}),
    "sliding_log": ("sliding log: 10 in any second", {"rate": 10, "period": SECOND}),
    "concurrency": ("concurrency: 10 at once, each for 700 ms", {"rate": 10, "period": SECOND, "ttl": 60 * SECOND}),
}
HOLD = 700 * MILLISECOND

WIDTH, LEFT, TOP, ROW = 860, 50, 44, 110


def decide(name, spec):
    """(when each admitted request acts, what is left at the end of each step)"""
    limiter = algorithms.ALGORITHMS[name](spec)
    acts, left, ends = [], [], []
    pending = list(REQUESTS)
    for end in range(STEP, END + 1, STEP):
        while pending and pending[0] < end:
            now = pending.pop(0)
            while ends and ends[0][0] <= now:
                when, lease = ends.pop(0)
                limiter.release(lease, when)
            fits, _ = limiter.judge(1, limiter.clamp(now))
            if not fits:
                continue
            extra = limiter.extra(1, limiter.clamp(now), True)
            limiter.put(1, limiter.clamp(now))
            acts.append(now + (extra.get("delay") or 0))
            if name == "concurrency":
                ends.append((now + HOLD, extra["lease"]))
        while ends and ends[0][0] < end:
            when, lease = ends.pop(0)
            limiter.release(lease, when)
        left.append(limiter.view(limiter.clamp(end - 1))["remaining"])
    return acts, left


def x_of(time):
    return LEFT + (WIDTH - LEFT - 20) * time / END


def bars(times, top, most, colour, title):
    counts = [0] * (END // STEP)
    for time in times:
        if time < END:
            counts[time // STEP] += 1
    lines = [f'<text x="{LEFT}" y="{top - 6}" class="name">{title}</text>']
    base = top + ROW - 30
    for step, count in enumerate(counts):
        if count:
            height = (ROW - 34) * count / most
            lines.append(f'<rect x="{x_of(step * STEP) + 1:.1f}" y="{base - height:.1f}" width="{x_of(STEP) - LEFT - 2:.1f}" '
                         f'height="{height:.1f}" fill="{colour}"/>')
    lines.append(f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - 20}" y2="{base}" class="axis"/>')
    lines.append(f'<text x="{LEFT - 6}" y="{top + 8}" class="scale">{most}</text>')
    return lines


def draw(name):
    title, spec = PICTURES[name]
    acts, left = decide(name, spec)
    most = 30
    rows = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{TOP + 3 * ROW + 10}" '
            f'viewBox="0 0 {WIDTH} {TOP + 3 * ROW + 10}" role="img">',
            f"<title>{title}</title>",
            "<style>text{font:12px sans-serif;fill:#444}.title{font-size:15px;fill:#111}.name{fill:#111}.scale{text-anchor:end}"
            ".tick{text-anchor:middle}.axis{stroke:#888}.grid{stroke:#ddd}</style>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{LEFT}" y="18" class="title">{title}</text>']
    for second in range(END // SECOND + 1):
        x = x_of(second * SECOND)
        rows.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + 3 * ROW - 30}" class="grid"/>')
        rows.append(f'<text x="{x:.1f}" y="{TOP + 3 * ROW - 14}" class="tick">{second} s</text>')
    rows += bars(REQUESTS, TOP, most, "#b0b0b0", f"asked, in each 100 ms: {len(REQUESTS)} in all")
    acted = "begun" if name == "leaky_bucket" else "let in"
    rows += bars(acts, TOP + ROW, most, "#2166ac", f"{acted}, in each 100 ms: {len(acts)} in all")
    top = TOP + 2 * ROW
    base = top + ROW - 30
    full = max(left)
    points = " ".join(f"{x_of((step + 1) * STEP):.1f},{base - (ROW - 34) * value / full:.1f}" for step, value in enumerate(left))
    rows.append(f'<text x="{LEFT}" y="{top - 6}" class="name">remaining</text>')
    rows.append(f'<polyline points="{points}" fill="none" stroke="#b2182b" stroke-width="1.5"/>')
    rows.append(f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - 20}" y2="{base}" class="axis"/>')
    rows.append(f'<text x="{LEFT - 6}" y="{top + 8}" class="scale">{full}</text>')
    return "\n".join(rows + ["</svg>"]) + "\n"


def main():
    different = []
    for name in PICTURES:
        file = HERE / f"{name}.svg"
        text = draw(name)
        if "--check" not in sys.argv:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            different.append(file.name)
    if different:
        print("not as docs/algorithms/draw.py draws them:", ", ".join(different))
    return 1 if different else 0


sys.exit(main())

"""The algorithms of docs/semantics.md section 3 and their verbs (section 5), exact: whole numbers only.

One Limiter is one limit on one key. Times are whole ticks since 1970 UTC; SECOND says how long a tick is. None means never.
"""
import math

from calendars import calendar_window

MAX_TOKENS = 10**15          # largest burst, cost, and debt that settle can make
SECOND = 10**9               # ticks a second: 1 tick = 1 ns; use_microseconds() makes it 1 us


def use_microseconds():
    global SECOND
    SECOND = 10**6


def ceil_div(a, b):
    return -(-a // b)


def longest():
    return 36_600 * 86_400 * SECOND          # no duration is given as longer than this


def field(spec, name, low, high, default=None):
    value = spec.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name}: {low} ... {high}")
    return value


class Limiter:
    """One limit on one key. `last` is the newest time that changed the state: an older now is answered as `last`."""

    def __init__(self, spec):
        self.configure(spec)
        self.forget()

    def configure(self, spec):
        self.spec = spec
        self.rate = field(spec, "rate", 0, 10**12)
        self.period = field(spec, "period", SECOND // 10**6, 366 * 86_400 * SECOND, SECOND)
        self.limit = self.rate

    def forget(self):
        self.last = None

    def clamp(self, now):
        return now if self.last is None else max(now, self.last)

    # -- what each algorithm defines; `now` is already clamped --------------------------------------------------------------
    def free(self, now): ...                 # whole tokens free, below 0 in debt
    def wait(self, cost, now): ...           # ticks until cost fits (0: now), None: never; cost >= 1
    def until_initial(self, now): ...        # reset_after
    def put(self, cost, now): ...            # take cost tokens, whatever the state
    def give(self, cost, now): ...           # give up to cost tokens back
    def lapsed(self, at, now): return False  # does a charge made at `at` no longer count at now?
    def extra(self, cost, now, ok): return {}

    # -- verbs ----------------------------------------------------------------------------------------------------------
    def view(self, now):
        reset = self.until_initial(now)
        return {"limit": self.limit, "remaining": max(0, self.free(now)),
                "reset_after": None if reset is None else min(reset, longest())}

    def judge(self, cost, now):
        """(fits, retry_after) of the present state."""
        if cost == 0:
            return True, 0
        if cost > self.limit:
            return False, None
        wait = self.wait(cost, now)
        return wait == 0, None if wait is None else min(wait, longest())

    def take(self, cost, now, room):
        """Take without asking, as much of cost as leaves at most `room` tokens of debt."""
        cost = min(cost, max(0, self.free(now) + room))
        if cost:
            self.put(cost, now)

    def count_denied(self, cost, now):
        pass

    def state(self, now):                    # what verbs other than check answer with
        now = self.clamp(now)
        return {"allowed": True, **self.view(now), "retry_after": 0, **self.extra(0, now, True)}

    def refund(self, cost, now, at=None):
        now = self.clamp(now)
        if cost and not (at is not None and self.lapsed(at, now)):
            self.give(cost, now)
        return self.state(now)

    def settle(self, reserved, actual, now, at=None):
        if actual <= reserved:
            return self.refund(reserved - actual, now, at)
        self.take(actual - reserved, self.clamp(now), MAX_TOKENS)
        return self.state(now)

    def penalize(self, cost, now):
        self.take(cost, self.clamp(now), self.limit)
        return self.state(now)

    def set_limit(self, spec, now):
        if self.last is None:
            self.configure(spec)
        elif spec != self.spec:
            self.convert(spec, self.clamp(now))
        return self.state(now)

    def convert(self, spec, now):
        self.configure(spec)

    def reset(self, now):
        self.forget()
        return self.state(now)


class TokenBucket(Limiter):
    """State: z = tokens * p at `last`, where c/p = rate/period in lowest terms, tokens a tick."""

    def configure(self, spec):
        super().configure(spec)
        self.limit = self.capacity(spec)
        g = math.gcd(self.rate, self.period)
        self.c, self.p = self.rate // g, self.period // g

    def capacity(self, spec):
        return field(spec, "burst", 1, MAX_TOKENS)

    def level(self, now):
        full = self.limit * self.p
        return full if self.last is None else min(full, self.z + (now - self.last) * self.c)

    def free(self, now):
        return self.level(now) // self.p

    def until(self, target, now):            # ticks until level = target
        need = target - self.level(now)
        return 0 if need <= 0 else None if self.c == 0 else ceil_div(need, self.c)

    def wait(self, cost, now):
        return self.until(cost * self.p, now)

    def until_initial(self, now):
        return self.until(self.limit * self.p, now)

    def put(self, cost, now):
        self.z, self.last = self.level(now) - cost * self.p, now

    def take(self, cost, now, room):
        level = self.level(now)
        after = max(level - cost * self.p, min(level, -room * self.p))
        if after != level:
            self.z, self.last = after, now

    def give(self, cost, now):
        level, full = self.level(now), self.limit * self.p
        if level < full:
            self.z, self.last = min(full, level + cost * self.p), now

    def convert(self, spec, now):
        level, p, full = self.level(now), self.p, self.until_initial(now) == 0
        self.configure(spec)
        top = self.limit * self.p
        self.z, self.last = top if full else min(top, level * self.p // p), now


class LeakyBucket(TokenBucket):
    """A queue: the token bucket of capacity queue + 1 whose missing tokens are the slots already given away."""

    def capacity(self, spec):
        if self.rate < 1:
            raise ValueError("rate: 1 ... 10^12")
        return field(spec, "queue", 0, MAX_TOKENS - 1) + 1

    def extra(self, cost, now, ok):
        return {"delay": min(self.until_initial(now), longest()) if ok else None}

    def give(self, cost, now):
        pass                                 # a slot given away would be given twice

    def convert(self, spec, now):            # slots already given keep their time, to the tick
        backlog = min(self.until_initial(now), longest())
        self.configure(spec)
        self.z, self.last = self.limit * self.p - backlog * self.c, now


class FixedWindow(Limiter):
    def configure(self, spec):
        super().configure(spec)
        self.calendar, self.align = spec.get("calendar"), spec.get("align", "epoch")

    def forget(self):
        self.last, self.start, self.count = None, None, 0

    def window(self, now):
        """(start, end) of the window that holds now; None: first_hit and none is open."""
        if self.calendar:
            return calendar_window(self.calendar, now, SECOND)
        if self.align == "epoch":
            return now // self.period * self.period, (now // self.period + 1) * self.period
        return (self.start, self.start + self.period) if self.start is not None and now < self.start + self.period else None

    def used(self, now):
        window = self.window(now)
        return self.count if window and window[0] == self.start else 0

    def free(self, now):
        return self.rate - self.used(now)

    def until_initial(self, now):
        window = self.window(now)
        return window[1] - now if window else 0

    def wait(self, cost, now):
        return 0 if self.used(now) + cost <= self.rate else self.until_initial(now)

    def put(self, cost, now):
        self.count = self.used(now) + cost
        self.start, self.last = (self.window(now) or (now,))[0], now

    def give(self, cost, now):
        if self.used(now):
            self.put(-min(cost, self.used(now)), now)

    def lapsed(self, at, now):
        window = self.window(now)
        return not window or at < window[0]

    def count_denied(self, cost, now):
        if self.spec.get("count_denied"):
            self.take(cost, now, MAX_TOKENS)

    def extra(self, cost, now, ok):
        hit = ok and cost > 0 and self.used(now) + cost == self.rate
        return {"mark": "quota_hit" if hit else None if ok else "over_quota"}

    def convert(self, spec, now):
        same = all(self.spec.get(k) == spec.get(k) for k in ("period", "align", "calendar"))
        self.configure(spec)
        if not same:
            self.forget()


class SlidingLog(Limiter):
    """State: (time, cost) of each admitted request, oldest first; one made at t counts in [t, t + period)."""

    def forget(self):
        self.last, self.log = None, []

    def live(self, now):
        return [e for e in self.log if now < e[0] + self.period]

    def free(self, now):
        return self.rate - sum(cost for _, cost in self.live(now))

    def until_initial(self, now):
        return max([t + self.period - now for t, _ in self.live(now)], default=0)

    def wait(self, cost, now):
        short = cost - self.free(now)
        for t, c in self.live(now):
            if short <= 0:
                break
            short, out = short - c, t + self.period - now
            if short <= 0:
                return out
        return 0

    def put(self, cost, now):
        self.log, self.last = self.live(now) + [(now, cost)], now

    def give(self, cost, now):               # newest first
        log = self.live(now)
        if log:
            self.last = now
        while cost and log:
            t, c = log.pop()
            if c > cost:
                log.append((t, c - cost))
            cost -= min(c, cost)
        self.log = log

    def lapsed(self, at, now):
        return at + self.period <= now

    def convert(self, spec, now):
        self.log = self.live(now)            # what has left does not come back
        self.configure(spec)


class SlidingWindow(Limiter):
    """State: tokens taken in each slot of period/slots; the slot that is leaving counts by the part still inside."""

    def configure(self, spec):
        super().configure(spec)
        self.slots = field(spec, "slots", 1, 1000, 1)
        self.width = self.period // self.slots
        if self.period % (self.slots * (SECOND // 10**6)):
            raise ValueError("slots: must split the period into whole microseconds")

    def forget(self):
        self.last, self.counts = None, {}

    def sums(self, slot):                    # (leaving slot, the n whole ones), as seen from inside `slot`
        return self.counts.get(slot - self.slots, 0), sum(self.counts.get(slot - k, 0) for k in range(self.slots))

    def free(self, now):
        old, whole = self.sums(now // self.width)
        return self.rate - whole - ceil_div(old * (self.width - now % self.width), self.width)

    def until_initial(self, now):
        counted = [s for s, c in self.counts.items() if c and s >= now // self.width - self.slots]
        return max(counted) * self.width + self.width + self.period - now if counted else 0

    def wait(self, cost, now):
        slot = now // self.width
        while True:                          # the estimate falls, so the first slot with a fitting moment has the answer
            old, whole = self.sums(slot)
            spare = self.rate - cost - whole
            if spare >= 0:
                inside = 0 if old <= spare else self.width - spare * self.width // old
                when = max(now, slot * self.width + inside)
                if when < (slot + 1) * self.width:
                    return when - now
            slot += 1

    def put(self, cost, now):
        slot = now // self.width
        self.counts = {s: c for s, c in self.counts.items() if s >= slot - self.slots}
        self.counts[slot], self.last = self.counts.get(slot, 0) + cost, now

    def give(self, cost, now):               # newest first
        slot = now // self.width
        for s in range(slot, slot - self.slots - 1, -1):
            back = min(cost, self.counts.get(s, 0))
            if back:
                self.counts[s], self.last, cost = self.counts[s] - back, now, cost - back

    def lapsed(self, at, now):
        return now // self.width - at // self.width > self.slots

    def convert(self, spec, now):
        same = (self.period, self.slots) == (spec.get("period", SECOND), spec.get("slots", 1))
        self.configure(spec)
        if not same:
            self.forget()


class Concurrency(Limiter):
    """State: the leases held, as {id: (end, cost)}; ids count from 1."""
    refund = settle = penalize = None        # no meaning here

    def configure(self, spec):
        super().configure(spec)
        self.ttl = field(spec, "ttl", SECOND // 10**6, 366 * 86_400 * SECOND, 60 * SECOND)

    def forget(self):
        self.last, self.leases, self.ids = None, {}, getattr(self, "ids", 0)

    def live(self, now):
        return {i: lease for i, lease in self.leases.items() if now < lease[0]}

    def free(self, now):
        return self.rate - sum(cost for _, cost in self.live(now).values())

    def until_initial(self, now):
        return max([end - now for end, _ in self.live(now).values()], default=0)

    def wait(self, cost, now):
        short = cost - self.free(now)
        if short <= 0:
            return 0
        for end, c in sorted(self.live(now).values()):
            short -= c
            if short <= 0:
                return end - now

    def put(self, cost, now):
        self.ids += 1
        self.leases, self.last = {**self.live(now), self.ids: (now + self.ttl, cost)}, now

    def extra(self, cost, now, ok):
        return {"lease": self.ids + 1 if ok and cost else None}

    def release(self, lease, now):
        now = self.clamp(now)
        known = lease in self.live(now)
        if known:
            self.leases, self.last = self.live(now), now
            del self.leases[lease]
        return {"released": known, **self.state(now)}


ALGORITHMS = {"token_bucket": TokenBucket, "leaky_bucket": LeakyBucket, "fixed_window": FixedWindow, "sliding_log": SlidingLog,
              "sliding_window": SlidingWindow, "concurrency": Concurrency}

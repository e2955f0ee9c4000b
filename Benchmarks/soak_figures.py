"""The figures of a part of soak.py: percentiles, growth, and whether it passed."""

import dataclasses
import statistics

from soak_load import PHASES, TICK, UNDISTURBED, Ledger

# Growth that is allowed in the second half of the time behind the last restart, by a robust slope: MB, and descriptors.
# The memory of a worker rises for some nine minutes after its start.
LIMITS = {"rss": 4, "memory": 6, "descriptors": 8}
# Seconds of a point in the chart.
WINDOW = 10


def percentile(values, share):
    """Returns a percentile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def slope(points):
    """Returns the median slope of all pairs of points (Theil and Sen): single outliers do not change it."""
    points = points[::max(1, len(points) // 400)]
    return statistics.median((y - x[1]) / (at - x[0]) for index, x in enumerate(points) for at, y in points[index + 1:])


@dataclasses.dataclass
class Part:
    title: str
    sessions: int
    start: float
    # Seconds of load.
    length: int
    # The last arrival, and the last event.
    end: float
    drained: float
    ledger: Ledger
    samples: list
    restarts: list
    lag: list
    # CPU seconds of the servers and of the load itself.
    others: dict
    # Sessions and segments that `verify` read.
    verified: tuple

    def __post_init__(self):
        self.batches = sorted(zip(self.ledger.releasedAt, self.ledger.latencies))

    def phase(self, at):
        return min(PHASES - 1, int((at - self.start) // TICK) * PHASES // (self.length // TICK))

    def latencies(self, phases):
        """Returns the sorted latencies of batches that arrived in these phases."""
        return sorted(latency for at, latency in self.batches if self.phase(at) in phases)

    def windows(self):
        """Returns for each WINDOW: seconds from the start, sorted latencies of its arrivals, the most that waited."""
        found = [[] for _ in range(-(-self.length // WINDOW))]
        for at, latency in self.batches:
            found[self.window(at)].append(latency)
        peaks = [0] * len(found)
        for second, waiting in self.ledger.peaks.items():
            peaks[self.window(second)] = max(peaks[self.window(second)], waiting)
        return [(index * WINDOW, sorted(values), peaks[index]) for index, values in enumerate(found) if values]

    def window(self, at):
        return min(-(-self.length // WINDOW) - 1, max(0, int((at - self.start) // WINDOW)))

    def cores(self, name):
        """Returns times, and the cores in use around them."""
        some = self.samples[::max(1, round(WINDOW / (self.samples[1].at - self.samples[0].at)))]
        return [((a.at + b.at) / 2, (getattr(b, name) - getattr(a, name)) / (b.at - a.at))
                for a, b in zip(some, some[1:])]

    def undisturbed(self, half=None):
        """Returns the samples behind the last restart, or one half of them."""
        first, last = (UNDISTURBED, PHASES) if half is None else (
            (UNDISTURBED, (UNDISTURBED + PHASES) // 2), ((UNDISTURBED + PHASES) // 2, PHASES))[half]
        return [sample for sample in self.samples if sample.at < self.end and first <= self.phase(sample.at) < last]

    def median(self, name, half):
        return statistics.median(getattr(sample, name) for sample in self.undisturbed(half))

    def growth(self, name):
        samples = self.undisturbed(half=1)
        return slope([(sample.at, getattr(sample, name)) for sample in samples]) * (samples[-1].at - samples[0].at)

    def cpu(self, name="cpu", half=None):
        """Returns the cores in use."""
        samples = self.undisturbed(half)
        return (getattr(samples[-1], name) - getattr(samples[0], name)) / (samples[-1].at - samples[0].at)

    @property
    def arrivals(self):
        """Batches a second."""
        return self.sessions / TICK

    @property
    def cpu_of_batch(self):
        """CPU ms of the worker and its decoders a batch."""
        return self.cpu() * 1e3 / self.arrivals

    @property
    def foreign(self):
        """Returns the cores in use by programs that do not belong to the run: of all, and of the worker's."""
        others = sum(self.others.values()) / (self.drained - self.start)
        return self.cpu("machine") - self.cpu() - others, self.cpu("core") - self.cpu()

    def after(self, restart):
        """Returns the effect of a restart.

        They are the seconds from the signal to the first event of the next worker, and of the batches that were not
        published at the signal, or arrived within a tick: the longest latency, and the most that waited.
        """
        ended = restart.at + restart.endS
        first = min(at + latency for at, latency in self.batches if at + latency > ended) - restart.at
        near = [latency for at, latency in self.batches if at < restart.at + TICK - 1 and at + latency > restart.at]
        waiting = max(self.ledger.peaks[second] for second in range(int(restart.at) - 1, int(restart.at) + TICK - 1))
        return first, max(near, default=0), waiting

    @property
    def faults(self):
        """Returns the reasons why the part failed. A part with lost batches may have ended early."""
        return self.ledger.faults or [f"{name} grew by {self.growth(name):.1f}, more than {limit}"
                                      for name, limit in LIMITS.items() if self.growth(name) > limit]

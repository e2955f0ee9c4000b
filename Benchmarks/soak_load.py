"""The load of soak.py: live sessions with one batch each five seconds, on a schedule that does not wait for the worker.

Arrivals are fixed in advance, so a slow worker shows as latency and slows no producer down. Phases take turns: arrivals
at the random instants at which the sessions began, and bursts of all sessions at once.
"""

import array
import collections
import random
import threading
import time
from dataclasses import dataclass

# Seconds of a batch, and its frames, one a second.
TICK, FRAMES = 5, 5
# The number of phases; even ones are steady, odd ones have bursts. The worker restarts in the middle of two of them:
# phase, seconds after a tick, signal. A burst is in work half a second after its tick.
PHASES = 12
RESTARTS = ((2, 2.5, "SIGTERM"), (3, 0.5, "SIGKILL"))
# From this phase on, nothing but the load is there to change the worker's state.
UNDISTURBED = 4
# Batches of a session that ends during the run: five minutes. Of LONG sessions one lives through the whole run.
BATCHES, LONG = 60, 10
# Seconds after the last batch of a session until its files are removed. More than a lease, in which a batch may repeat,
# and a worker's interval of a minute between scans of a store for ends that a dead worker has left.
KEEP = 180
START = 1_767_859_512_340
# Films that sessions show: a session of another ten, or the next one in its place, has another film.
FILMS = 10


@dataclass
class Batch:
    session: str
    number: int
    isFinal: bool
    # The film, and its capture with which the session begins.
    film: int = 0
    first: int = 0

    @property
    def name(self):
        return f"{self.session}@{self.number:05}"

    @property
    def startMs(self):
        return START + self.number * TICK * 1_000

    def frames(self):
        """Yields the capture time of each frame, and the number of its capture in the film."""
        for index in range(FRAMES):
            yield self.startMs + index * 1_000, self.first + self.number * FRAMES + index


class Ledger:
    """Every batch, from its release to its event. For several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = {}
        self.releasedAt, self.latencies = array.array("d"), array.array("d")
        # The maximum of waiting batches by whole seconds.
        self.peaks = collections.Counter()
        self.published = collections.defaultdict(dict)
        self.touched = {}
        # The keys of the events of ended sessions.
        self.ended = {}
        self.repeated, self.removed = 0, 0
        self.faults = []

    def fault(self, text):
        with self.lock:
            if len(self.faults) < 20:
                self.faults.append(text)

    def release(self, batch, now):
        with self.lock:
            self.waiting[batch.name] = now, batch.startMs
            self.peaks[int(now)] = max(self.peaks[int(now)], len(self.waiting))

    def arrive(self, now, event):
        """Takes an event of the worker: the batch is published, or the session has ended."""
        if event["event"] == "session.ended":
            return self.end(event)
        name = event["batch"]
        if event["event"] not in ("batch.published", "batch.duplicate") or len(event["sessions"]) != 1:
            with self.lock:
                self.waiting.pop(name, None)
            return self.fault(f"{name}: {event['event']}: {event.get('reason')}")
        told = event["sessions"][0]
        outcome = event["key"], *((part["file"], part["sha256"]) for part in told["segments"])
        with self.lock:
            before = self.published[told["session"]].get(name)
            released, start = self.waiting.pop(name, (None, None))
            if released is not None and not before:
                self.releasedAt.append(released)
                self.latencies.append(now - released)
                self.published[told["session"]][name] = outcome
                self.touched[told["session"]] = now
            else:
                self.repeated += 1
        if before and before != outcome:
            self.fault(f"{name}: published twice: {before}, {outcome}")
        elif not before and released is None:
            self.fault(f"{name}: an event of an unknown batch")
        elif start is not None and (told["frames"], told["segmentCount"], told["refusedCount"], told["gaps"],
                                    told["startMs"]) != (FRAMES, 1, 0, [], start):
            self.fault(f"{name}: {told}")

    def end(self, event):
        session, key = event["session"], event["key"]
        with self.lock:
            self.repeated += session in self.ended
            first = self.ended.setdefault(session, key)
        if first != key:
            self.fault(f"{session}: ended twice")

    def check(self, session, index):
        """Compares the index of a session with the events of its batches."""
        with self.lock:
            batches = self.published[session]
            wanted = [part for name in sorted(batches) for part in batches[name][1:]]
        found = [(part["file"], part["sha256"]) for part in index["segments"]]
        if found != wanted or index["gaps"] or index["frames"] != FRAMES * len(wanted):
            self.fault(f"{session}: session.json has {len(found)} segments, {index['frames']} frames and the gaps "
                       f"{index['gaps']}; the events have {len(wanted)} segments")

    def forget(self, session):
        """Forgets a session that ended long ago. Returns its batches."""
        if not self.ended.pop(session, None):
            self.fault(f"{session}: no event of its end")
        with self.lock:
            self.removed += 1
            self.touched.pop(session)
            return self.published.pop(session)


class Load:
    """Live sessions that hand batches to a queue."""

    def __init__(self, queue, ledger, sessions, ticks):
        self.queue, self.ledger, self.ticks = queue, ledger, ticks
        # Seconds from a tick to each session's batch.
        dice = random.Random(1)
        self.offsets = sorted(dice.uniform(0, TICK) for _ in range(sessions))
        # The number of the next batch, by session; sessions of different ages end at different times.
        self.live = [self.begin(slot, 0, slot * 37 % BATCHES) for slot in range(sessions)]
        self.prepared = [None] * sessions
        self.ended = collections.deque()
        self.chores = collections.deque()
        self.lag = array.array("d")

    @staticmethod
    def begin(slot, generation, age=0):
        return {"slot": slot, "generation": generation, "session": f"{slot:03}-{generation:04}", "next": 0,
                "batches": None if slot % LONG == 0 else BATCHES - age}

    def prepare(self, slot):
        live = self.live[slot]
        film = (3 * slot + slot // FILMS + live["generation"]) % FILMS
        batch = Batch(live["session"], live["next"], live["next"] + 1 == live["batches"], film, slot * FRAMES)
        self.queue.prepare(batch)
        self.prepared[slot] = batch
        live["next"] += 1
        if batch.isFinal:
            self.ended.append(batch.session)
            self.live[slot] = self.begin(slot, live["generation"] + 1)

    def release(self, slot):
        batch, self.prepared[slot] = self.prepared[slot], None
        self.ledger.release(batch, time.monotonic())
        self.queue.release(batch)

    def offset(self, slot, tick):
        """Returns the seconds from the tick until a session's batch arrives."""
        return self.offsets[slot] if tick * PHASES // self.ticks % 2 == 0 else 0

    def run(self, start, shouldContinue):
        """Releases all batches in time, and prepares, checks and removes while there is time."""
        for slot in range(len(self.live)):
            self.prepare(slot)
        stale = collections.deque()
        for tick in range(self.ticks):
            self.retire()
            for slot in range(len(self.live)):
                due = start + tick * TICK + self.offset(slot, tick)
                while (now := time.monotonic()) < due or not self.prepared[slot]:
                    if stale:
                        self.prepare(stale.popleft())
                    elif self.chores:
                        self.chores.popleft()()
                    else:
                        time.sleep(max(0, min(due - now, 0.5)))
                    if not shouldContinue():
                        return
                self.lag.append(now - due)
                self.release(slot)
                stale.append(slot)
            if tick + 1 == self.ticks:
                return

    def retire(self):
        """Finds the sessions that ended long ago; the check and the removal of each become chores."""
        while self.ended:
            touched = self.ledger.touched.get(self.ended[0])
            if touched is None or time.monotonic() < touched + KEEP:
                return
            session = self.ended.popleft()
            self.chores.append(lambda session=session: self.check(session))
            self.chores.append(lambda session=session: self.chores.extend(
                self.queue.removals(session, self.ledger.forget(session))))

    def check(self, session):
        try:
            self.ledger.check(session, self.queue.index(session))
        except (OSError, ValueError) as error:
            self.ledger.fault(f"{session}: no index: {error}")

"""A discrete-event simulation: batches arrive, wait in a queue, are encoded and published, while failures occur.

The model: a batch is an object in the store, which is the source of truth, and a message in the queue, which may be
lost. A worker claims a message, encodes, publishes (it skips a batch that is already published), and acknowledges the
message if it still holds the claim. A message whose worker sends no heartbeat for a lease goes to another worker. A
reconciler lists the store, and enqueues each unpublished batch that is not in the queue. Times are seconds. The same
seed gives the same run.
"""
import bisect
import collections
import dataclasses
import heapq
import random


@dataclasses.dataclass
class Mishap:
    """A failure of one `kind`.

    deaths: `share` of the workers crash, and return after `lasts`. freeze: the same workers pause, and then continue.
    queue: the queue loses its content, and answers again after `lasts`.
    store: requests take `share` times as long, and half of the batches fail.
    """
    at: float
    kind: str
    lasts: float = 30
    share: float = 0.2


@dataclasses.dataclass
class Setup:
    rate: object            # a function: batches a second at a time
    most: float             # upper bound of `rate`
    seconds: float          # duration of the arrivals
    workers: int
    slots: int              # concurrent batches of each worker
    work: float             # mean seconds of work for a batch; single batches vary around it
    lease: float = 60
    reconcile: float = 300
    mishaps: tuple = ()
    seed: int = 1
    drain: float = 0        # seconds that workers continue after the last arrival


class Simulation:
    def __init__(self, setup):
        self.setup, self.dice = setup, random.Random(setup.seed)
        self.born, self.published, self.delays, self.samples = [], bytearray(), [], []
        self.queue, self.pending, self.queued = collections.deque(), {}, set()
        self.free = [worker for worker in range(setup.workers) for _ in range(setup.slots)]
        self.life, self.absent, self.frozen = [0] * setup.workers, set(), {}
        self.hands = [set() for _ in range(setup.workers)]
        self.events, self.count, self.deliveries = [], 0, 0
        self.down, self.slow, self.factor = 0, 0, 1
        self.twice = self.redelivered = self.failed = self.requeued = 0
        self.now = 0.0

    def at(self, time, call, *arguments):
        self.count += 1
        heapq.heappush(self.events, (time, self.count, call, arguments))

    def run(self):
        """Runs until arrivals and the drain time are over. Returns self."""
        for mishap in self.setup.mishaps:
            self.at(mishap.at, self.befall, mishap)
        self.at(self.setup.reconcile, self.look)
        self.at(0, self.sample)
        arrival, end = self.next_arrival(0), self.setup.seconds + self.setup.drain
        while True:
            if arrival is not None and (not self.events or arrival <= self.events[0][0]):
                self.now = arrival
                self.submit()
                arrival = self.next_arrival(arrival)
            elif self.events and self.events[0][0] <= end:
                self.now, _, call, arguments = heapq.heappop(self.events)
                call(*arguments)
            else:
                self.delays.sort()
                return self

    def next_arrival(self, time):
        while time < self.setup.seconds:
            time += self.dice.expovariate(self.setup.most)
            if self.dice.random() * self.setup.most < self.setup.rate(time):
                return time if time < self.setup.seconds else None
        return None

    def submit(self):
        batch = len(self.born)
        self.born.append(self.now)
        self.published.append(0)
        if self.now >= self.down:
            self.enqueue(batch)

    def enqueue(self, batch):
        self.queue.append(batch)
        self.queued.add(batch)
        self.hand_out()

    def hand_out(self):
        while self.queue and self.now >= self.down and self.free:
            worker = self.free.pop()
            if worker in self.absent or worker in self.frozen:
                continue  # The worker's slots become free when it returns.
            batch = self.queue.popleft()
            self.queued.discard(batch)
            self.deliveries += 1
            self.pending[batch] = self.deliveries
            self.hands[worker].add((batch, self.deliveries))
            # The store reports at once that the batch is already published.
            takes = 0.05 if self.published[batch] else self.setup.work * self.dice.uniform(0.5, 1.5)
            if self.now < self.slow:
                takes *= self.factor
            self.at(self.now + takes, self.finish, worker, self.life[worker], batch, self.deliveries,
                    bool(self.published[batch]))

    def finish(self, worker, life, batch, delivery, knew):
        if self.life[worker] != life:
            return
        if worker in self.frozen:
            self.at(self.frozen[worker], self.finish, worker, life, batch, delivery, knew)
            return
        self.hands[worker].discard((batch, delivery))
        self.free.append(worker)
        if self.now < self.slow and self.dice.random() < 0.5:
            self.failed += 1
            if self.pending.get(batch) == delivery:
                # The worker keeps its claim until the retry.
                self.at(self.now + self.dice.uniform(1, 30), self.hand_back, batch, delivery)
        else:
            if self.published[batch]:
                self.twice += not knew
            else:
                self.published[batch] = 1
                self.delays.append(self.now - self.born[batch])
            if self.pending.get(batch) == delivery:
                del self.pending[batch]
        self.hand_out()

    def hand_back(self, batch, delivery):
        if self.pending.get(batch) == delivery:
            del self.pending[batch]
            self.enqueue(batch)

    def expire(self, batch, delivery):
        if self.pending.get(batch) == delivery:
            self.redelivered += 1
            self.hand_back(batch, delivery)

    def befall(self, mishap):
        if mishap.kind == "queue":
            self.queue.clear(), self.queued.clear(), self.pending.clear()
            self.down = self.now + mishap.lasts
            return self.at(self.down, self.hand_out)
        if mishap.kind == "store":
            self.slow, self.factor = self.now + mishap.lasts, mishap.share
            return None
        there = [worker for worker in range(self.setup.workers) if worker not in self.absent and worker not in self.frozen]
        for worker in self.dice.sample(there, min(len(there), max(1, round(mishap.share * self.setup.workers)))):
            for held in sorted(self.hands[worker]):
                self.at(self.now + self.setup.lease, self.expire, *held)
            if mishap.kind == "deaths":
                self.life[worker] += 1
                self.hands[worker].clear()
                self.absent.add(worker)
                self.at(self.now + mishap.lasts, self.come_back, worker)
            else:
                self.frozen[worker] = self.now + mishap.lasts
                self.at(self.frozen[worker], self.come_back, worker)

    def come_back(self, worker):
        self.absent.discard(worker)
        self.frozen.pop(worker, None)
        self.free = [one for one in self.free if one != worker]
        self.free += [worker] * (self.setup.slots - len(self.hands[worker]))
        self.hand_out()

    def look(self):
        """The reconciler: enqueues batches that are over a minute old, unpublished, and not in the queue."""
        if self.now >= self.down:
            for batch in range(bisect.bisect_left(self.born, self.now - 60)):
                if not self.published[batch] and batch not in self.queued and batch not in self.pending:
                    self.requeued += 1
                    self.enqueue(batch)
        self.at(self.now + self.setup.reconcile, self.look)

    def sample(self):
        self.samples.append((self.now, len(self.born) - len(self.delays)))
        self.at(self.now + 10, self.sample)

    @property
    def owed(self):
        return self.published.count(0)

    def delay(self, share):
        """Returns the percentile `share` of the seconds from arrival to publication."""
        return self.delays[min(len(self.delays) - 1, int(share * len(self.delays)))] if self.delays else 0.0

    def recovery(self, since):
        """Returns seconds from a failure until the backlog is at most twice the maximum before it, or None."""
        usual = 2 * max((owed for time, owed in self.samples if time <= since), default=0)
        last = max((time for time, owed in self.samples if owed > usual), default=since)
        return None if last == self.samples[-1][0] else max(0, last - since)

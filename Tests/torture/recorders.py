"""Recorders for restarts.py. They hand numbered pictures to a worker or a folder, and note when each was sent and taken.

A recording is planned before it begins. Its captures lie on a clock of its own, so that a run may be shorter than its film."""
import collections
import dataclasses
import http.client
import itertools
import os
import threading
import time

import numbered

# The captures of the first source begin here, in unix milliseconds.
START_MS = 1_767_859_512_340
# Seconds after which a recorder without an answer gives a picture up.
HANG_S = 120


@dataclasses.dataclass
class Picture:
    """A picture of a recorder. Times are those of the monotonic clock, in seconds."""
    session: str
    number: int
    instant_ms: int
    # Whether another picture of the recording has this instant.
    is_rival: bool = False
    # When the recorder first handed it in; None: it never did.
    sent_s: float = None
    # When a worker has answered with 200 or 201. Pictures in folders have none.
    taken_s: float = None
    # When another picture took its name in a folder, or its file was still there at the end (None).
    replaced_s: float = None
    times_sent: int = 0
    # The answer to the last request.
    status: int = None

    @property
    def data(self):
        return numbered.png(self.number)

    def send(self):
        """Notes that the recorder hands the picture in."""
        self.sent_s = self.sent_s or time.monotonic()
        self.times_sent += 1


@dataclasses.dataclass
class Habits:
    """How a recorder works. Probabilities are those of one picture."""
    # Least and most milliseconds between captures.
    interval_ms: tuple = (950, 1050)
    # Seconds of the run for each second of the recording.
    pace: float = 1
    pause: float = 0
    late: float = 0
    again: float = 0
    rival: float = 0
    # Captures at most.
    most: int = 1_000
    # Milliseconds by which the clock jumps once; 0: it does not.
    step_ms: int = 0
    # Seconds for which the recorder has no network once; 0: it always has.
    outage_s: float = 0

    @property
    def are_orderly(self):
        return not (self.late or self.again or self.rival or self.step_ms)


def habits(chance, is_orderly, has_name=False, may_lose_network=False):
    """Returns the habits of a random recorder.

    is_orderly: its pictures come once, and in order. has_name: it writes the same file again and again."""
    # Regular recorders, and as many irregular ones: a guess about the hold of their pictures is wrong more often.
    shortest = chance.choice((200, 300, 700, 950, 2_000))
    longest = chance.choice([most for most in (400, 1_050, 1_500, 3_000) if most > shortest])
    if chance.random() < 0.5:
        shortest, longest = 200, chance.choice((1_500, 3_000))
    found = Habits((shortest, longest), pace=1 if has_name else chance.uniform(0.3, 1),
                   pause=chance.choice((0, 0, 0.03)))
    if may_lose_network and chance.random() < 0.2:
        found.outage_s = 17
    elif not has_name and chance.random() < 0.1:
        # A short session, all of which comes at once.
        found.pace, found.most = 0.001, chance.randrange(1, 20)
    if not is_orderly:
        found.late = chance.choice((0, 0.03, 0.1))
        found.again = 0 if has_name else chance.choice((0, 0.05))
        found.rival = 0 if has_name else chance.choice((0, 0, 0.02))
        if chance.random() < 0.3:
            found.step_ms = chance.choice((-1, 1)) * int(10 ** chance.uniform(3.3, 6))
    return found


def plan(chance, session, source, seconds, habits):
    """Plans a recording of so many seconds. Returns its steps, (seconds from the begin, picture), in their order.

    The number of a picture has its source in the bits from 20 on. A late picture has a later step than its capture, and a repeated
    one has two. A rival has the instant of an earlier picture, and other content."""
    steps, captures, due = [], 0, 0.0
    instant_ms = START_MS + source * 60_000 + chance.randrange(1_000)
    numbers = itertools.count(source << 20)
    outage_s = chance.uniform(1, seconds) if habits.outage_s else seconds
    step_at = chance.randrange(5, 15)
    while due < seconds and captures < habits.most:
        is_away = outage_s <= due < outage_s + habits.outage_s
        picture = Picture(session, next(numbers), instant_ms)
        sent = outage_s + habits.outage_s if is_away else due
        if chance.random() < habits.late:
            sent += 10 ** chance.uniform(-0.7, 0.9)
        steps.append((sent, picture))
        if chance.random() < habits.again:
            steps.append((sent + 10 ** chance.uniform(-1, 0.8), picture))
        elif chance.random() < habits.rival:
            steps.append((sent + chance.uniform(5.5, 8), Picture(session, next(numbers), instant_ms)))
        captures += 1
        interval_ms = chance.randrange(*habits.interval_ms)
        if chance.random() < habits.pause:
            interval_ms += chance.randrange(3_000, 9_000)
        due += habits.pace * interval_ms / 1_000
        instant_ms += interval_ms + (habits.step_ms if captures == step_at else 0)
    mark_rivals({id(picture): picture for _, picture in steps}.values())
    return sorted(steps, key=lambda step: step[0])


def mark_rivals(pictures):
    """Marks pictures of one instant: those that were planned, and those that a step of the clock has made."""
    counts = collections.Counter(picture.instant_ms for picture in pictures)
    for picture in pictures:
        picture.is_rival = counts[picture.instant_ms] > 1


class Recorder(threading.Thread):
    """Does the steps of a recording, each at its time. A subclass hands in the pictures."""

    def __init__(self, steps, habits, then=lambda: None):
        """then: called after the last step."""
        super().__init__(daemon=True)
        self.steps, self.habits, self.then = steps, habits, then
        self.faults = []

    @property
    def pictures(self):
        """The pictures that were handed in, each once, in the order of their sending."""
        sent = {picture.number: picture for _, picture in self.steps if picture.sent_s is not None}
        return sorted(sent.values(), key=lambda picture: picture.sent_s)

    @property
    def session(self):
        return self.steps[0][1].session

    def run(self):
        begin = time.monotonic()
        for due, picture in self.steps:
            time.sleep(max(0, begin + due - time.monotonic()))
            self.hand_in(picture)
        self.then()


class FolderRecorder(Recorder):
    """Writes each picture into a folder as <unix ms>.png."""

    def __init__(self, folder, *others, **named):
        super().__init__(*others, **named)
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, picture):
        return os.path.join(self.folder, f"{picture.instant_ms}.png")

    def hand_in(self, picture):
        path = self.path(picture)
        # A picture that no batch has would be lost if the recorder replaced it by its rival.
        if picture.is_rival and picture.sent_s is None and os.path.exists(path):
            return
        picture.send()
        self.write(path, picture)

    def write(self, path, picture):
        draft = os.path.join(self.folder, ".draft")
        with open(draft, "wb") as file:
            file.write(picture.data)
        os.utime(draft, ns=(picture.instant_ms * 1_000_000,) * 2)
        os.rename(draft, path)


class NamedFileRecorder(FolderRecorder):
    """Writes each picture into the same file, whose modification time is the capture."""
    last = None

    def path(self, picture):
        return os.path.join(self.folder, "snapshot.png")

    def hand_in(self, picture):
        if self.last:
            self.last.replaced_s = time.monotonic()
        super().hand_in(picture)
        self.last = picture


class HTTPRecorder(Recorder):
    """Posts each picture to a worker until the worker has answered."""

    def __init__(self, port, *others, **named):
        super().__init__(*others, **named)
        self.port, self.patience_s = port, HANG_S

    def hand_in(self, picture):
        picture.send()
        picture.status = self.post(f"/v1/sessions/{picture.session}/frames?t={picture.instant_ms}", picture.data)
        if picture.status in (200, 201):
            picture.taken_s = picture.taken_s or time.monotonic()
        elif not (picture.status == 409 and picture.is_rival):
            self.faults.append(("refused", f"picture {picture.number} of {picture.session} at {picture.instant_ms}: "
                                           f"{picture.status}"))

    def end(self):
        """Asks for the end of the session. Returns whether the worker has promised it."""
        status = self.post(f"/v1/sessions/{self.session}/end", b"")
        if status != 202:
            self.faults.append(("end refused", f"POST /v1/sessions/{self.session}/end: {status}"))
        return status == 202

    def post(self, path, body):
        """Sends a request until it has an answer that is final. Returns its status, or None."""
        end = time.monotonic() + self.patience_s
        while time.monotonic() < end:
            status = self.try_to_post(path, body)
            if status not in (None, 408, 429, 503):
                return status
            time.sleep(0.1)
        # The worker is lost: the other pictures need not wait so long.
        self.patience_s = 1
        return None

    def try_to_post(self, path, body):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("POST", path, body, {"Content-Type": "image/png"} if body else {})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status
        except (OSError, http.client.HTTPException):
            return None

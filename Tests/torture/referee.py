"""The referee of restarts.py: compares the pictures that recorders handed in with what was published.

**The rule.** Each picture that was acknowledged is shown at its instant, exactly, in a session of its recorder. A picture over HTTP
is acknowledged by 200 or 201, and one in a folder by being there. A file that is written again and again may be replaced before
`collect` can see it: a version is acknowledged if it was not replaced, if `collect` ran for SEEN_S while it was there and the disk was
not full, or if the spool has a copy of it.

An acknowledged picture that is not shown must be in quarantine, byte for byte, and its producer must have sent other content for its
time (CONTRACT.md, 3 and 5). That is so in two cases only:

1. *Rival*: the producer sent another picture with the same instant, and that one is shown. The batch's manifest may also list the
   rival as refused.
2. *Late*: the picture came out of order, and its instant lies within the hold of another published picture, strictly. It came out of
   order if the producer had sent a picture with a later instant before. That one ended the hold, so the hold was no guess. For a folder,
   `collect` must have run between the two, for longer than the START_S that it waits for a whole scan: it cannot know in which order files
   were written before.

A picture that came in order is never at fault, whatever was stopped: no guess of the worker about a hold, or about the end of a session,
may cost a picture. Neither may the pictures beside it in its batch. A late picture in time for which nothing is published is to be
published. A step of a recorder's clock makes pictures late like any other reason.

Pictures that came in order leave no gap in `session.json` between captures that are MAX_HOLD_MS apart at most: each stays until the
next one (CONTRACT.md, 2), except where a pause of --end-after-pause in its delivery has cut it.

The newest picture of a session over HTTP that nobody has ended may still wait for the next one. Nothing else may be left."""
import collections
import hashlib
import io
import json
import os
import tarfile

import numbered

# Seconds for which a version of a file has to be there while `collect` runs; and seconds that `collect` needs to start.
SEEN_S, START_S = 0.8, 2
# Seconds until `collect` tries again after a full disk.
RETRY_S = 6
TICKS = 90
# The default of --max-hold.
MAX_HOLD_MS = 5_000

Fault = collections.namedtuple("Fault", "kind text")
Hold = collections.namedtuple("Hold", "start_ms end_ms number")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def is_of(session, name):
    """Whether a published session is that of a recorder. One without a name of its own ends in `-*`."""
    return name.startswith(session[:-1]) if session.endswith("*") else name == session


class Published:
    """The pictures in an output directory, found by decoding all films of a session together."""

    def __init__(self, output):
        # By number: (session, instant, file). By session: holds, sources of refused frames, and session.json.
        self.shown, self.holds = collections.defaultdict(list), collections.defaultdict(list)
        self.refused, self.sessions = collections.defaultdict(set), {}
        self.faults = []
        names = sorted(os.listdir(output)) if os.path.isdir(output) else []
        for session in names:
            if not session.startswith("."):
                self.read_session(session, os.path.join(output, session))

    def read_session(self, session, path):
        files = [name for name in sorted(os.listdir(path)) if name.startswith("segment-")]
        films = [name for name in files if name.endswith(".mp4")]
        whole = [name for name in films if name[:-4] + ".json" in files]
        self.faults += [Fault("orphan", f"{session}/{name} has no manifest") for name in films if name not in whole]
        try:
            for name, pictures in zip(whole, numbered.films([os.path.join(path, name) for name in whole])):
                self.read_segment(session, path, name, pictures)
        except ValueError as error:
            self.faults.append(Fault("wrong picture", f"{session}: {error}"))
        try:
            self.sessions[session] = json.loads(read(os.path.join(path, "session.json")))
        except OSError:
            self.faults.append(Fault("views", f"{session} has no session.json"))
            return
        if listed := {segment["file"] for segment in self.sessions[session]["segments"]} ^ set(films):
            self.faults.append(Fault("views", f"{session}/session.json does not list the films: {sorted(listed)}"))

    def read_segment(self, session, path, name, pictures):
        manifest = json.loads(read(os.path.join(path, name[:-4] + ".json")))
        self.refused[session] |= {refused["source"] for refused in manifest["refused"]}
        starts = [max(frame["timeMs"], manifest["startMs"]) for frame in manifest["frames"]]
        for frame, start, end in zip(manifest["frames"], starts, starts[1:] + [manifest["endMs"]]):
            self.read_frame(session, name, manifest, pictures, Hold(start, end, None), frame)

    def read_frame(self, session, name, manifest, pictures, hold, frame):
        """Notes a frame, and checks that the film shows one picture during its hold."""
        first, last = (TICKS * (instant - manifest["startMs"]) for instant in (hold.start_ms, hold.end_ms))
        numbers = {number for time, number in pictures.items() if first <= time < last}
        number = pictures.get(first)
        if number is None or numbers != {number}:
            self.faults.append(Fault("wrong picture", f"{session}/{name} shows {numbers or 'nothing'} at {hold.start_ms}"))
            return
        self.holds[session].append(hold._replace(number=number))
        if frame["status"] == "captured":
            self.shown[number].append((session, frame["timeMs"], name))

    def hold(self, picture):
        """Returns the hold of another picture that an instant lies in; None if nothing is published for it."""
        for session, holds in self.holds.items():
            for hold in holds if is_of(picture.session, session) else ():
                # A held picture goes on at the start of a segment.
                if hold.start_ms <= picture.instant_ms < hold.end_ms and hold.number != picture.number:
                    return hold
        return None


class Copies:
    """The files with the bytes of pictures, wherever they lie, and archives with such files in them."""

    def __init__(self, roots, pictures):
        self.numbers = {hashlib.sha256(picture.data).digest(): picture.number for picture in pictures}
        # By number: paths.
        self.paths = collections.defaultdict(list)
        for root in roots:
            for directory, _, names in os.walk(root):
                for name in names:
                    self.add(root, os.path.join(directory, name))

    def add(self, root, path):
        try:
            data = read(path)
        except FileNotFoundError:
            return
        place = os.path.join(os.path.basename(root), os.path.relpath(path, root))
        contents = [data]
        if data[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                contents = [tar.extractfile(member).read() for member in tar if member.isfile()]
        for content in contents:
            number = self.numbers.get(hashlib.sha256(content).digest())
            if number is not None:
                self.paths[number].append(place)


def causes(quarantine):
    """Returns the causes of quarantined batches, by name."""
    names = os.listdir(quarantine) if os.path.isdir(quarantine) else []
    return {name.removesuffix(".reason.json"): json.loads(read(os.path.join(quarantine, name))).get("cause", "")
            for name in names if name.endswith(".reason.json")}


class Referee:
    """Judges a run, which has:

    - recorders, roots: the recorders, and the directories where copies may lie.
    - output, quarantine: directories.
    - ups: a function from a recorder to the times when the process that collects its folder ran.
    - ends: when sessions were asked to end. open_sessions: those that may not have ended.
    - left: other files that are left. events: the lines of --json.
    - was_killed; fulls: when a disk was full; begin_s; idle_ms, after which a session without a name of its own may end;
      cuts_at_pauses: whether a pause of a recorder may be longer than --end-after-pause; has_retried: whether batches came back from quarantine."""

    def __init__(self, run):
        self.run = run
        self.pictures = [picture for recorder in run.recorders for picture in recorder.pictures]
        self.published = Published(run.output)
        self.copies = Copies(run.roots, self.pictures)
        self.causes = causes(run.quarantine)
        self.faults = list(self.published.faults)
        self.excused = self.acknowledged = 0

    def judge(self):
        """Returns all faults of the run."""
        for recorder in self.run.recorders:
            self.faults += [Fault(*fault) for fault in recorder.faults]
            for picture in recorder.pictures:
                self.judge_picture(picture, recorder)
            if recorder.habits.are_orderly:
                self.judge_order(recorder)
        self.judge_ends()
        self.judge_rest()
        return self.faults

    # Pictures

    def judge_picture(self, picture, recorder):
        shown = [place for place in self.published.shown[picture.number] if is_of(picture.session, place[0])]
        if any(instant != picture.instant_ms for _, instant, _ in self.published.shown[picture.number]):
            self.add("wrong instant", picture)
        if len(shown) > len({session for session, _, _ in shown}) or len(shown) > 1 and picture.times_sent == 1:
            self.add("doubled", picture)
        if not shown and not self.is_acknowledged(picture, recorder):
            return
        self.acknowledged += 1
        if shown:
            if self.quarantined(picture) and picture.times_sent == 1:
                self.add("doubled", picture)
        elif self.is_excused(picture, recorder):
            self.excused += 1
        elif not self.may_wait(picture, recorder):
            order = "late, but nothing is published for its time" if self.is_late(picture, recorder) else "it came in order"
            self.add("quarantined" if self.quarantined(picture) else self.fate(picture), picture, order)

    def is_acknowledged(self, picture, recorder):
        ups = self.run.ups(recorder)
        if ups is None:
            return picture.taken_s is not None
        if picture.replaced_s is None or self.copies.paths[picture.number]:
            return True
        # A full disk has no room for a copy.
        if any(picture.sent_s < end + RETRY_S and begin < picture.replaced_s for begin, end in self.run.fulls):
            return False
        return any(min(picture.replaced_s, end) - max(picture.sent_s, begin + START_S) >= SEEN_S for begin, end in ups)

    def quarantined(self, picture):
        return [path for path in self.copies.paths[picture.number] if "/quarantine/" in f"/{path}"]

    def fate(self, picture):
        return "left" if self.copies.paths[picture.number] else "lost"

    def is_excused(self, picture, recorder):
        """Whether the producer has sent other content for the time of a picture that is not shown: see the rule above."""
        rivals = [other for other in recorder.pictures
                  if other.instant_ms == picture.instant_ms and other.number != picture.number]
        if any(self.published.shown[rival.number] for rival in rivals):
            return bool(self.quarantined(picture) or self.is_refused(picture))
        return bool(self.quarantined(picture)) and self.is_late(picture, recorder) and bool(self.published.hold(picture))

    def is_refused(self, picture):
        """Whether a manifest lists a picture by the name that its recorder gave it."""
        return any(str(picture.instant_ms) in os.path.basename(source)
                   for session, sources in self.published.refused.items() if is_of(picture.session, session)
                   for source in sources)

    def is_late(self, picture, recorder):
        earlier = [other.sent_s for other in recorder.pictures
                   if other.sent_s < picture.sent_s and other.instant_ms > picture.instant_ms]
        ups = self.run.ups(recorder)
        if ups is None or not earlier:
            return bool(earlier)
        return any(begin + START_S < picture.sent_s and end > min(earlier) for begin, end in ups)

    def may_wait(self, picture, recorder):
        """Whether a picture is the newest one of a session over HTTP that nobody has ended, and is still there."""
        if self.run.ups(recorder) is not None or picture.session in self.run.ends:
            return False
        newest = max(other.instant_ms for other in recorder.pictures if other.taken_s is not None)
        return picture.instant_ms == newest and self.fate(picture) == "left" and not self.quarantined(picture)

    def judge_order(self, recorder):
        """Checks that pictures in order are in one session, as long as no pause ends it, and that no gap is between them."""
        placed = [(picture, place[0][0]) for picture in recorder.pictures if (place := self.published.shown[picture.number])]
        is_cut = recorder.habits.outage_s or self.run.cuts_at_pauses
        for (one, before), (picture, session) in zip(placed, placed[1:]):
            distance_ms = picture.instant_ms - one.instant_ms
            if session != before and distance_ms < self.run.idle_ms:
                self.add("split", picture, f"the picture before it, at {one.instant_ms}, is in {before}")
            elif session == before and distance_ms <= MAX_HOLD_MS and not is_cut:
                gaps = [gap for gap in self.published.sessions.get(session, {}).get("gaps", ())
                        if gap["startMs"] < picture.instant_ms and gap["endMs"] > one.instant_ms]
                if gaps:
                    self.add("false gap", picture, f"the picture before it is at {one.instant_ms}, and a gap at {gaps}")

    # Ends

    def judge_ends(self):
        ended = collections.defaultdict(list)
        for event in self.run.events:
            if event.get("event") == "session.ended":
                ended[event["session"]].append(event)
        for session, asked_s in self.run.ends.items():
            for name in self.published.sessions:
                if is_of(session, name):
                    self.judge_end(name, session, ended[name], asked_s)
        for session in self.run.open_sessions:
            if self.published.sessions.get(session, {}).get("complete"):
                self.faults.append(Fault("ended unasked", session))

    def judge_end(self, name, session, events, asked_s):
        if not self.published.sessions[name]["complete"]:
            self.faults.append(Fault("never ended", f"{name}: {len(events)} events"))
        elif not events:
            self.faults.append(Fault("end not announced", name))
        playlist = os.path.join(self.run.output, name, "hls", "session.m3u8")
        if os.path.exists(playlist) and b"#EXT-X-ENDLIST" not in read(playlist):
            self.faults.append(Fault("never ended", f"{name}: its playlist is open"))
        if len({event["key"] for event in events}) > 1 or len(events) > 1 and not self.run.was_killed:
            self.faults.append(Fault("ended twice", f"{name}: {events}"))
        before = [picture for picture in self.pictures
                  if picture.session == session and picture.taken_s is not None and picture.taken_s < asked_s
                  and self.published.shown[picture.number]]
        missing = [picture for picture in before for event in events[:1] if picture.instant_ms >= event["endMs"]]
        if events and not self.run.has_retried and (missing or events[0]["frames"] < len(before)):
            self.faults.append(Fault(
                "ended early", f"{name}: {len(before)} pictures were acknowledged before the request, "
                               f"{events[0]['frames']} were published at the end, {len(missing)} of them are later"))

    # Pictures that are left

    def judge_rest(self):
        """Checks that no copy of a shown picture is left behind, and that all shown pictures are known."""
        known = {picture.number for picture in self.pictures}
        for number, places in self.published.shown.items():
            if number not in known:
                self.faults.append(Fault("strange picture", f"{number}: {places}"))
        for picture in self.pictures:
            rest = set(self.copies.paths[picture.number]) - set(self.quarantined(picture))
            if rest and self.published.shown[picture.number]:
                self.add("left", picture)
        for path in self.run.left:
            self.faults.append(Fault("left", path))

    def add(self, kind, picture, more=""):
        self.faults.append(Fault(kind, self.story(picture) + (f"; {more}" if more else "")))

    def story(self, picture):
        """Returns what was sent, and where it is now."""
        at = [f"{session}/{name} at {instant}" for session, instant, name in self.published.shown[picture.number]]
        paths = [self.with_cause(path) for path in self.copies.paths[picture.number]]
        times = [f"{event} {time - self.run.begin_s:.2f} s" for event, time in
                 (("sent", picture.sent_s), ("taken", picture.taken_s), ("replaced", picture.replaced_s)) if time]
        return (f"{picture.session} {picture.instant_ms} (number {picture.number & 0xfffff}, {', '.join(times)}, "
                f"{picture.times_sent} times); now: {', '.join(at + paths) or 'nowhere'}")

    def with_cause(self, path):
        parts = path.split("/")
        cause = self.causes.get(parts[parts.index("quarantine") + 1]) if "quarantine" in parts else None
        return f"{path} ({cause})" if cause else path

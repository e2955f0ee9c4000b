"""A run of restarts.py: programs that are stopped at random while recorders work, and the judgement of what they have left."""
import collections
import concurrent.futures
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import time

import numbered
import recorders
import referee
import spool as spools

# The size of the file system that fills up.
SMALL_DISK = "96m"
# Seconds until a process that was asked to stop counts as hung.
STOP_S = 30
# Seconds in which a process has its handlers of signals.
BEGIN_S = 10
# Seconds that a process works before it is stopped for the last time, and that it needs to retry after a full disk.
CALM_S, RECOVERY_S = 3, 20
# Seconds without a picture after which the last `collect` hands over all.
LAST_IDLE_S = 6
# Places in a spool whose pictures need no `collect` and no --ingest any more.
HANDED_OVER = ("output", "quarantine", "incoming", "claimed", "trash", "tmp")


class Program:
    """A process of the program under test, which is stopped and started again."""

    def __init__(self, run, name, *words):
        self.run, self.name, self.words = run, name, words
        # When it ran: [begin, end] of each process. The end of one that runs is infinite.
        self.times = []

    def start(self):
        with open(f"{self.run.logs}/{self.name}.out", "ab") as out, open(f"{self.run.logs}/{self.name}.err", "ab") as errors:
            errors.write(f"--- started at {self.run.now():.2f} s\n".encode())
            errors.flush()
            # It dies with this script.
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", self.run.worker, *self.words], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=errors, env=self.run.environment)
        self.times.append([time.monotonic(), float("inf")])

    def revive(self):
        """Starts the process again if it has ended by itself, which it may on a full disk."""
        if self.process.poll() is not None:
            self.judge(self.process.returncode)
            self.start()

    def stop(self, number=signal.SIGTERM):
        age = time.monotonic() - self.times[-1][0]
        self.process.send_signal(number)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.run.faults.append(referee.Fault("hung", f"{self.name} runs {STOP_S} s after signal {number}"))
            self.process.kill()
            status = self.process.wait()
        self.times[-1][1] = time.monotonic()
        # A process that has just begun has no handler of signals. On a busy machine, that takes a while.
        if status != -number or number != signal.SIGKILL and age > BEGIN_S:
            self.judge(status)

    def judge(self, status):
        """Notes an exit status that nothing explains."""
        self.times[-1][1] = min(self.times[-1][1], time.monotonic())
        if status == 64:
            raise SystemExit(f"restarts: {' '.join(self.words)}: see {self.name}.err: "
                             + referee.read(f"{self.run.logs}/{self.name}.err").decode()[-500:])
        if status and not (status in (74, 75) and self.run.is_or_was_full()):
            self.run.faults.append(referee.Fault("exit", f"{self.name} ended with {status} at {self.run.now():.2f} s"))


class Run:
    """One run: recorders and programs, stops, and the end. A subclass is a scenario."""
    cuts_at_pauses = has_retried = False

    def __init__(self, options, seed, directory, hosts):
        self.options, self.worker, self.peers = options, options.worker, hosts
        self.chance = random.Random(f"{seed} {self.scenario}")
        self.name, self.directory = f"{self.scenario}-{seed}", directory
        self.logs, self.small = os.path.join(directory, "logs"), os.path.join(directory, "disk")
        os.makedirs(self.logs)
        os.makedirs(self.small)
        self.environment = dict(os.environ)
        self.seconds = self.chance.uniform(9, 18)
        self.programs, self.recorders, self.faults = [], [], []
        # Sessions, with the time of the request for their end; sessions that may not end; sessions to be ended by a command.
        self.ends, self.open_sessions, self.ends_last = {}, [], []
        self.stops, self.fulls = collections.Counter(), []
        self.views = ("--hls",) if self.chance.random() < 0.3 else ()
        self.begin_s = time.monotonic()
        self.idle_ms = 1_000 * LAST_IDLE_S
        self.is_mounted = not options.calm and self.chance.random() < 0.3 and not spools.mount(
            "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "torture", self.small)

    def now(self):
        return time.monotonic() - self.begin_s

    def habits(self, **named):
        is_orderly = self.options.orderly or self.is_orderly
        return recorders.habits(self.chance, is_orderly, **named)

    def plan(self, session, source, habits):
        return recorders.plan(self.chance, session, source, self.seconds, habits)

    def make_spool(self):
        """Makes a spool that a worker has used before: `end` refuses one without output."""
        os.mkdir(os.path.join(spools.make(self.spool), "output"))

    # The events of a run

    def play(self):
        """Does all of the run, and judges it."""
        self.is_orderly = self.chance.random() < 0.4
        self.prepare()
        for program in self.programs:
            program.start()
        # Files that `collect` finds when it begins wait longer than those that come later.
        time.sleep(3 if self.options.calm else self.chance.choice((0, 3)))
        for recorder in self.recorders:
            recorder.start()
        if not self.options.calm:
            self.disturb()
        while any(recorder.is_alive() for recorder in self.recorders):
            self.wait(0.3)
        self.stop()
        self.settle()
        judge = referee.Referee(self)
        self.faults += judge.judge()
        self.acknowledged, self.excused = judge.acknowledged, judge.excused
        with open(f"{self.logs}/pictures.txt", "w") as file:
            file.writelines(judge.story(picture) + "\n" for picture in judge.pictures)

    def clean(self):
        """Ends all processes, and replaces the small disk by a copy of it."""
        for program in self.programs:
            if program.times and program.process.poll() is None:
                program.stop(signal.SIGKILL)
        if self.is_mounted:
            copy = self.small + "-copy"
            shutil.copytree(self.small, copy)
            subprocess.run(["umount", "-l", self.small], check=True)
            os.rmdir(self.small)
            os.rename(copy, self.small)

    def __str__(self):
        pictures = [picture for recorder in self.recorders for picture in recorder.pictures]
        stops = ", ".join(f"{count} × {name}" for name, count in sorted(self.stops.items())) or "no stop"
        return (f"{self.scenario}, {self.title}; {stops}; {len(pictures)} pictures, {self.acknowledged} acknowledged, "
                f"{self.excused} refused for the producer, {len(self.ends)} ends; {len(self.faults)} faults, {self.now():.0f} s")

    def disturb(self):
        """Stops programs, and fills the disk, at random times."""
        begin = time.monotonic()
        for due in sorted(self.chance.uniform(0.5, self.seconds + 3) for _ in range(self.chance.choice((1, 2, 3, 5, 8)))):
            self.wait(begin + due - time.monotonic())
            if self.is_mounted and (not self.fulls or self.chance.random() < 0.3):
                self.fill()
            else:
                self.restart()

    def wait(self, seconds):
        """Waits, and starts programs again that end by themselves."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(0.3, left))
            for program in self.programs:
                program.revive()

    def restart(self):
        program = self.chance.choice(self.programs)
        number = self.chance.choice((signal.SIGTERM, signal.SIGKILL))
        self.stops[number.name] += 1
        program.stop(number)
        time.sleep(self.chance.choice((0, self.chance.uniform(0, 1), self.chance.uniform(1, 4))))
        program.start()

    def fill(self):
        """Fills the small disk for some seconds. A program may be stopped meanwhile."""
        self.stops["full disk"] += 1
        self.fulls.append([time.monotonic(), float("inf")])
        filler = os.path.join(self.small, "filler")
        with open(filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4_096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass
        self.wait(self.chance.uniform(0.5, 2))
        if self.chance.random() < 0.5:
            self.restart()
        os.unlink(filler)
        self.fulls[-1][1] = time.monotonic() + 2

    def is_or_was_full(self):
        return bool(self.fulls) and time.monotonic() < self.fulls[-1][1]

    # The end

    def stop(self):
        """Stops all programs as an operator does: they have worked for a while, and start again after a full disk."""
        for program in self.programs:
            program.revive()
            if self.fulls and time.monotonic() < self.fulls[-1][1] + RECOVERY_S:
                program.stop()
                program.start()
        for program in self.programs:
            time.sleep(max(0, program.times[-1][0] + CALM_S - time.monotonic()))
            program.revive()
            program.stop()

    def call(self, *words):
        """Runs a command. Returns its status."""
        with open(f"{self.logs}/commands.out", "ab") as out, open(f"{self.logs}/commands.err", "ab") as errors:
            errors.write(f"--- {' '.join(words)} at {self.now():.2f} s\n".encode())
            errors.flush()
            return subprocess.run([self.worker, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                  env=self.environment).returncode

    def choose_end(self, session, ways, post=None):
        """Decides how a session ends. Returns what its recorder does after its last picture."""
        way = self.chance.choice(ways)
        if way == "now":
            return lambda: self.end(session)
        if way == "post":
            return lambda: self.note_end(session, time.monotonic(), post())
        if way == "last":
            self.ends_last.append(session)
        elif way == "never":
            self.open_sessions.append(session)
        elif way == "by itself":
            self.ends[session] = float("inf")
        return lambda: None

    def end(self, session):
        """Asks for the end of a session by the command, again while the disk is full."""
        asked_s = time.monotonic()
        status = self.call("end", session, "--spool", self.spool)
        while status and (self.is_or_was_full() or time.monotonic() < asked_s + 10):
            time.sleep(0.3)
            status = self.call("end", session, "--spool", self.spool)
        if status:
            self.faults.append(referee.Fault("end refused", f"end {session}: status {status}"))
        self.note_end(session, asked_s, not status)

    def note_end(self, session, asked_s, is_promised):
        if is_promised:
            self.ends[session] = asked_s

    def drain(self, *options, at_once=1):
        """Drains all batches, and those again whose workers were killed three times in a row."""
        words = ("run", *options, "--drain", "--json", "--jobs", "1", *self.views)
        for attempt in range(4):
            with concurrent.futures.ThreadPoolExecutor() as pool:
                statuses = set(pool.map(lambda _: self.call(*words), range(at_once)))
            dead = self.dead_batches()
            if statuses <= {0, 65} and not dead:
                return
            if dead:
                self.has_retried = True
                self.call("quarantine", "retry", *options[:4], *dead)
        self.faults.append(referee.Fault("drain", f"run --drain ended with {statuses}; {len(dead)} batches of dead workers"))

    def dead_batches(self):
        """Returns the names of batches in quarantine because their workers were killed."""
        return [name for name, cause in referee.causes(self.quarantine).items() if "workers died" in cause]

    @property
    def quarantine(self):
        return os.path.join(self.spool, "quarantine")

    @property
    def output(self):
        return os.path.join(self.spool, "output")

    @property
    def left(self):
        """Batches, and files of batches, that nobody has finished."""
        return [path for place in ("incoming/*", "claimed/*/*/*", "tmp/*") for path in
                glob.glob(os.path.join(glob.escape(self.spool), place))]

    @property
    def was_killed(self):
        return bool(self.stops["SIGKILL"] or self.stops["full disk"])

    @property
    def events(self):
        """The lines of --json of all runs, without those that a kill cut off."""
        found = []
        for path in glob.glob(f"{glob.escape(self.logs)}/*.out"):
            for line in referee.read(path).splitlines():
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return [event for event in found if isinstance(event, dict)]

    def waiting(self, root):
        """Returns the pictures below a directory that no batch in incoming/ has."""
        places = [name for name in spools.names(root) if name not in HANDED_OVER]
        paths = [os.path.join(directory, name) for place in places
                 for directory, _, names in os.walk(os.path.join(root, place)) for name in names]
        return [path for path in paths if numbered.is_png(path)]

"""The scenarios of restarts.py."""
import glob
import os
import shutil
import time

import packs
import peers
import recorders
import spool as spools
from disturbed import LAST_IDLE_S, Program, Run

# Seconds for the last pictures to be handed over, and seconds after which a claim in the queue is taken over.
HAND_OVER_S, LEASE_S = 40, 10


class CollectRun(Run):
    """`collect` of one folder, or of some, into a spool that workers may share."""
    scenario, workers = "collect", (0, 1)
    # Whether the command that ends a session sees the pictures of `collect`.
    ends_see_all = True

    def prepare(self):
        # The spool of `collect`, and that of the sessions.
        self.near = self.spool = os.path.join(self.small, "spool")
        self.folder = os.path.join(self.directory, "shots")
        self.has_names = self.chance.random() < 0.7
        shape = self.chance.choice(("--session desk", "", "--recursive", "--recursive --session hall"))
        self.words = ["collect", self.folder, "--spool", self.spool, "--batch-every", str(self.chance.choice((1, 2, 5))),
                      *shape.split(), *(() if self.has_names else ("--times", "mtime")), *self.way()]
        # A short pause cuts batches, but it must not end sessions whose names are made.
        idle = self.chance.choice(("60", "3")) if shape else "60"
        self.cuts_at_pauses = idle == "3"
        self.programs.append(Program(self, "collect", *self.words, "--end-after-pause", idle))
        count = self.chance.choice(self.workers)
        for number in range(count):
            words = ("run", "--spool", self.spool, "--json", "--jobs", "1", *self.views)
            self.programs.append(Program(self, f"worker-{number}", *words))
        self.prepare_recorders(shape)
        self.roots = [self.spool] + ([self.folder] if self.has_names else [])
        self.title = f"{' '.join(self.words[4:])} --end-after-pause {idle}, {count} workers"
        self.make_spool()

    def way(self):
        """Returns the options for the way of the batches."""
        return ()

    def prepare_recorders(self, shape):
        folders = {"": {"": "shots-*"}, "--session desk": {"": "desk"}}.get(shape)
        if folders is None:
            base = "hall." if "hall" in shape else ""
            folders = {f"kiosk-{number}": f"{base}kiosk-{number}" for number in range(self.chance.randint(2, 4))}
        kind = recorders.FolderRecorder if self.has_names else recorders.NamedFileRecorder
        for source, (folder, session) in enumerate(folders.items()):
            habits = self.habits(has_name=not self.has_names)
            # A session of the watched folder itself ends after a pause.
            ways = ("now", "last", "never") if folder else ("now", "last", "by itself") if session == "desk" else (
                "by itself" if habits.are_orderly else "nobody knows",)
            ways = [way for way in ways if self.ends_see_all or way != "now"]
            then = self.choose_end(session, ways)
            self.recorders.append(kind(os.path.join(self.folder, folder), self.plan(session, source, habits), habits,
                                       then=then))

    def ups(self, recorder):
        return self.programs[0].times

    def settle(self):
        is_first = self.chance.random() < 0.5
        for session in self.ends_last if is_first else ():
            self.end(session)
        self.hand_over()
        for session in () if is_first else self.ends_last:
            self.end(session)
        self.drain("--spool", self.spool, at_once=max(1, len(self.programs) - 1))

    def hand_over(self):
        """Runs `collect` until it has made batches of all that is there."""
        last = Program(self, "collect", *self.words, "--end-after-pause", str(LAST_IDLE_S))
        last.times = self.programs[0].times
        last.start()
        begin = time.monotonic()
        while time.monotonic() < begin + HAND_OVER_S:
            time.sleep(0.2)
            files = glob.glob(glob.escape(self.folder) + "/**/*.png", recursive=True) if self.has_names else []
            if time.monotonic() > begin + LAST_IDLE_S + 2.5 and not files and self.is_handed_over():
                break
        last.stop()

    def is_handed_over(self):
        return not self.waiting(self.near)


class SenderRun(CollectRun):
    """`collect --to` of one folder, or of some, and a worker elsewhere. Both are stopped."""
    scenario, workers, ends_see_all = "sender", (0,), False

    def way(self):
        self.port = peers.free_port()
        return "--to", f"http://127.0.0.1:{self.port}"

    def prepare(self):
        super().prepare()
        self.spool = os.path.join(self.directory, "far")
        self.make_spool()
        self.roots.append(self.spool)
        self.programs.append(Program(self, "worker", "run", "--spool", self.spool, "--ingest", f"127.0.0.1:{self.port}",
                                     "--ingest-open", "--json", "--jobs", "1", *self.views))

    def settle(self):
        worker = self.programs[-1]
        worker.start()
        self.hand_over()
        worker.stop()
        for session in self.ends_last:
            self.end(session)
        self.drain("--spool", self.spool)

    def is_handed_over(self):
        return super().is_handed_over() and not spools.names(self.near, "incoming")


class WorkersRun(CollectRun):
    """Two workers, and `collect`, on one spool."""
    scenario, workers = "workers", (2,)


class IngestRun(Run):
    """Pictures over HTTP to a worker with a spool."""
    scenario, ways = "ingest", ("post", "post", "now", "last", "never")

    def prepare(self):
        self.spool = os.path.join(self.small, "spool")
        self.make_spool()
        self.roots = [self.spool]
        self.prepare_ingest("--spool", self.spool)

    def prepare_ingest(self, *options):
        port = peers.free_port()
        words = ("run", *options, "--ingest", f"127.0.0.1:{port}", "--ingest-open", "--json", "--jobs", "1",
                 *self.views)
        self.programs.append(Program(self, "worker", *words))
        for source in range(self.chance.randint(2, 4)):
            session, habits = f"phone-{source}", self.habits(may_lose_network=True)
            recorder = recorders.HTTPRecorder(port, self.plan(session, source, habits), habits)
            recorder.then = self.choose_end(session, self.ways, post=recorder.end)
            self.recorders.append(recorder)
        self.title = f"{len(self.recorders)} sessions"

    def ups(self, recorder):
        return None

    def settle(self):
        for session in self.ends_last:
            self.end(session)
        self.drain("--spool", self.spool)


class StoreRun(IngestRun):
    """Pictures over HTTP to a worker with a queue and a store."""
    scenario, ways = "store", ("post", "post", "never")

    def prepare(self):
        # The name has a part of its own: the store keeps the sessions of runs with the same seed.
        self.prefix = f"{self.name}-{time.time_ns()}"
        self.options_of_peers = self.peers.options(self.prefix)
        self.state, self.spool = os.path.join(self.small, "state"), os.path.join(self.directory, "store")
        scratch = os.path.join(self.directory, "tmp")
        for path in (self.state, self.spool, scratch):
            os.mkdir(path)
        self.environment |= self.peers.environment | {"TMPDIR": scratch}
        self.roots = [self.state, self.spool]
        self.prepare_ingest(*self.options_of_peers, "--ingest-state", self.state, "--lease", str(LEASE_S))

    def settle(self):
        """Starts the worker once more, so that it forwards all batches; then drains the queue."""
        worker = self.programs[0]
        worker.start()
        end = time.monotonic() + HAND_OVER_S
        while time.monotonic() < end and (time.monotonic() < end - HAND_OVER_S + 3 or self.is_forwarding()):
            time.sleep(0.2)
        worker.stop()
        # A drain does not wait for the claims of workers that were killed.
        time.sleep(LEASE_S + 1 if self.was_killed else 0)
        self.drain(*self.options_of_peers, "--lease", str(LEASE_S))

    def is_forwarding(self):
        """Whether the state has a batch, or more pictures than the newest of each session."""
        return spools.names(self.state, "incoming") or len(self.waiting(self.state)) > len(self.open_sessions)

    def dead_batches(self):
        self.download()
        return super().dead_batches()

    def download(self):
        """Replaces the copy of the store, which the referee reads, by what is there now."""
        shutil.rmtree(self.spool)
        os.mkdir(self.spool)
        self.peers.download(self.prefix, self.spool)


class PackedRun(StoreRun):
    """The same with packs."""
    scenario = "packed"

    def prepare_ingest(self, *options):
        super().prepare_ingest(*options, "--layout", "packed")

    def drain(self, *options, at_once=1):
        super().drain(*options, "--layout", "packed", at_once=at_once)

    def download(self):
        super().download()
        packs.unpack(self.spool, self.output)


class UploadRun(IngestRun):
    """Pictures over HTTP to a worker with a spool, which brings its sessions into a store when they have ended."""
    scenario = "upload"

    def prepare(self):
        self.prefix = f"{self.name}-{time.time_ns()}"
        self.store = os.path.join(self.directory, "store")
        self.upload = ("--upload", f"s3://{peers.BUCKET}/{self.prefix}", *self.chance.choice(((), ("--upload-every", "1"))))
        self.environment |= self.peers.environment
        super().prepare()

    def prepare_ingest(self, *options):
        super().prepare_ingest(*options, *self.upload)

    def settle(self):
        for session in self.ends_last:
            self.end(session)
        self.drain("--spool", self.spool, *self.upload)
        os.mkdir(self.store)
        self.peers.download(self.prefix, self.store)
        packs.unpack(self.store, self.output)


# The scenarios that need a queue or a store.
REMOTE = (StoreRun, PackedRun, UploadRun)
SCENARIOS = {kind.scenario: kind for kind in (CollectRun, WorkersRun, SenderRun, IngestRun, *REMOTE)}

#!/usr/bin/python3
"""Runs the commands that read sessions and videos on forged ones, and checks how each command ends.

    forged.py WORKER --sessions N --videos M --seed S --scratch DIR [--seconds 10] [--megabytes 300]

The same seed makes the same material with the same WORKER and ffmpeg. Without ffmpeg, only the worker's own videos are
damaged. Any exit status below 128 is valid. A process must not:

- trap, or end by a signal;
- take more than --seconds of CPU time for an input, or PATIENCE times that in all (in two attempts);
- have more than --megabytes resident;
- leave a process behind;
- write a file of 1 GiB;
- change or show the file that a link leads to.

`serve` must answer every request within PATIENCE times --seconds, and stay alive. Each failure is one line with the command that
repeats it. Its material stays in DIR."""

import argparse
import ctypes
import http.client
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
from forgeries import SECRET, SESSION_KINDS, START, Session, damaged, put_nonsense

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
# On a loaded machine a process waits many times as long as it works.
PATIENCE = 12
TRAP = re.compile(rb"Fatal error|Swift runtime|Illegal instruction|Program crashed|Sanitizer|\*\*\* Signal|smashing detected")
PAGES = ["", "timeline.json", "session.m3u8", "session.json", "session.ffconcat", "thumbnail.jpg", "session.mp4", "session.gif",
         f"frame.jpg?t={START + 1500}", f"frame.jpg?t={(1 << 63) - 1}", f"segment-{START}.json"]
MAX_FILES, MAX_BODY, GROUP, PR_SET_CHILD_SUBREAPER = 12, 1 << 20, 10, 36
VIDEO = "-f lavfi -i testsrc=size=96x64:rate=8 -frames:v 12 -pix_fmt yuv420p"
ENCODERS = {"h264": "-c:v libx264 -bf 3 -g 6", "hevc": "-c:v libx265 -x265-params log-level=none",
            "fragments": "-c:v libx264 -bf 2 -g 4 -movflags frag_keyframe+empty_moov+default_base_moof"}


class Attack:
    """Runs the worker, and collects the faults."""

    def __init__(self, options, work):
        self.options, self.work, self.worker = options, work, os.path.abspath(options.worker)
        self.made, self.victim, self.failures, self.kept = work / "made", work / "victim", 0, set()
        self.victim.write_bytes(SECRET)
        for name in ("tmp", "output", "videos"):
            (work / name).mkdir()

    def start(self, arguments, output, errors):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, limits[1]))
        try:
            return subprocess.Popen([self.worker, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                    start_new_session=True, env=os.environ | {"TMPDIR": str(self.work / "tmp")})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    def end(self, process, output, limit=float("inf")):
        """Waits for a process, which may take so many seconds of CPU time. -> the fault of its end, or None."""
        late = threading.Event()
        patience = PATIENCE * self.options.seconds
        timer = threading.Timer(patience, lambda: (late.set(), os.killpg(process.pid, signal.SIGKILL)))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = self.status = status = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said, stray = output.read(MAX_BODY), self.stray(process.pid)
        if late.is_set():
            return f"not done after {patience:g} s"
        if usage.ru_utime + usage.ru_stime > limit:
            return f"{usage.ru_utime + usage.ru_stime:.1f} s of CPU time"
        if status < 0 or status >= 128:
            return f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        if found := TRAP.search(said):
            return f"said {found[0].decode()!r}"
        # This includes the peak of this Python process, which is below 150 MiB.
        if usage.ru_maxrss >> 10 > self.options.megabytes:
            return f"{usage.ru_maxrss >> 10} MiB resident"
        return stray or ("shows what a link leads to" if SECRET in said else None)

    @staticmethod
    def stray(group):
        """Waits for processes that a process leaves behind: orphans become children of this process. -> the fault, or
        None."""
        for _ in range(30):
            try:
                while os.waitpid(-group, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return None
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)
        return "left a process behind"

    def run(self, *arguments):
        with tempfile.TemporaryFile(dir=self.work) as output:
            return self.end(self.start(arguments, output, output), output, self.options.seconds)

    def attempt(self, kind, material, *arguments, fresh=True):
        """Runs a command that reads one input, and records its failure."""
        for _ in range(2):
            if fresh:
                shutil.rmtree(self.made, ignore_errors=True)
                self.made.mkdir()
            if not (complaint := self.run(*map(str, arguments)) or "").startswith("not done"):
                break
        if self.victim.read_bytes() != SECRET:
            complaint = "changed what a link leads to"
            self.victim.write_bytes(SECRET)
        if complaint:
            # The next command needs an empty directory.
            kept = self.made.rename(self.made.with_name(f"made-{self.failures}"))
            self.made.mkdir()
            command = shlex.join(map(str, [self.worker, *arguments])).replace(str(self.made), str(kept))
            self.fail(kind, material, complaint, command)
        return complaint

    def fail(self, kind, material, complaint, command):
        self.kept.add(material)
        self.failures += 1
        progress()
        print(f"seed {self.options.seed}, {kind}: {complaint}: {command} ({material})", flush=True)

    def genuine(self):
        """-> directories of valid sessions, and bytes of videos."""
        output = self.work / "genuine"
        names = ["exact-1fps", "rotation", "gap"]
        if complaint := self.run("encode", *(str(FIXTURES / name) for name in names), "--output", str(output), "--sentry"):
            sys.exit(f"forged: cannot encode fixtures: {complaint}")
        self.run("stitch", str(output / "rotation"), "--to", str(output / "film.mp4"))
        if shutil.which("ffmpeg"):
            for name, settings in ENCODERS.items():
                command = f"ffmpeg -v error -nostdin {VIDEO} {settings} {shlex.quote(str(output / name))}.mp4"
                subprocess.run(shlex.split(command), stderr=subprocess.DEVNULL)
        sealed = Session(self.work / "unchanged", output / "rotation", [])
        sealed.write(self.victim)
        if self.run("verify", str(sealed.path)) or self.status != 0:
            sys.exit(f"forged: verify refuses an unchanged session that is sealed again: {sealed.path}")
        shutil.rmtree(sealed.path)
        files = [*sorted(output.glob("*/*.mp4")), *sorted(output.glob("*.mp4"))]
        return [output / name for name in names], [file.read_bytes() for file in files if file.stat().st_size > 0]

    def forge(self, sessions, videos):
        """-> the forged sessions with their kinds; every kind occurs before any occurs again."""
        forged, kinds = [], []
        for index in range(self.options.sessions):
            rng = random.Random(f"{self.options.seed}:session:{index}")
            kinds = kinds or rng.sample(sorted(SESSION_KINDS), len(SESSION_KINDS))
            session = Session(self.work / "output" / f"s{index}", rng.choice(sessions), videos)
            SESSION_KINDS[kind := kinds.pop()](rng, session)
            session.write(self.victim)
            forged.append((session.path, kind))
        return forged

    def read_sessions(self, forged):
        for start in range(0, len(forged), GROUP):
            group = forged[start:start + GROUP]
            if not (complaint := self.run("verify", *(str(path) for path, _ in group))):
                continue
            failed = any([self.attempt(kind, path, "verify", path) for path, kind in group])
            if not failed and not complaint.startswith("not done"):
                self.attempt("several kinds", group[0][0].parent, "verify", *(path for path, _ in group))
        for index, (path, kind) in enumerate(forged):
            progress(f"session {index}", kind)
            rng = random.Random(f"{self.options.seed}:commands:{index}")
            self.attempt(kind, path, "stitch", path, "--to", self.made / "film.mp4", "--gaps", rng.choice(["hold", "cut"]))
            self.attempt(kind, path, "pictures", path, "--sheet", "--to", self.made / "sheet.png", "--width",
                         rng.choice([72, 200, 500]))
            self.attempt(kind, path, "pictures", path, "--to", self.made / "pictures.zip", "--changed-only", "--max", 20)
            self.attempt(kind, path, "pictures", path, "--at", f"+{rng.choice([0, 1.5, 1e9])}s", "--to",
                         self.made / "frame.png")
            for arguments in (["stitch", path, "--to", self.made / "hls", "--format", "hls"],
                              ["reencode", path, "--output", self.made / "again", "--quality", "small", "--jobs", 2]):
                self.attempt(kind, path, *arguments)
                # Both commands reuse existing output, so the test changes it now and then.
                files = sorted(file for file in self.made.rglob("*") if file.is_file())
                if files and rng.random() < 0.3:
                    put_nonsense(rng, rng.choice(files), self.victim)
                    self.attempt(f"{kind}, then damaged results", path, *arguments, fresh=False)

    def read_videos(self, videos):
        for index in range(self.options.videos):
            rng = random.Random(f"{self.options.seed}:video:{index}")
            path = self.work / "videos" / f"v{index}.mp4"
            kind, data = damaged(rng, rng.choice(videos))
            if rng.random() < 0.25:
                second, data = damaged(rng, data) if len(data) > 64 else ("", data)
                kind += f", {second}"
            progress(f"video {index}", kind)
            path.write_bytes(data)
            if rng.random() < 0.02:
                kind = "no video"
                put_nonsense(rng, path, self.victim)
            self.attempt(kind, path, "reencode", path, "--output", self.made, "--quality", "small", "--session", f"v{index}",
                         "--start", START, "--jobs", 2)
            if path not in self.kept:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)

    def serve(self, forged):
        server = None
        for path, kind in [*forged, (self.work / "output", "all sessions")]:
            progress("serve", path.name)
            server = server or Server(self)
            if complaint := server.visit(path, path != self.work / "output"):
                complaint, server = "; ".join(filter(None, [complaint, server.stop()])), None
                self.fail(kind, path, complaint, f"{self.worker} serve {self.work / 'output'}")
                if "does not listen" in complaint:
                    return
        if server and (complaint := server.stop()):
            self.fail("all sessions", self.work / "output", complaint, f"{self.worker} serve {self.work / 'output'}")


class Server:
    """Runs `serve` on all forged sessions."""

    def __init__(self, attack):
        self.attack, self.output = attack, tempfile.TemporaryFile(dir=attack.work)
        arguments = ["serve", str(attack.work / "output"), "--listen", "127.0.0.1:0"]
        self.process = attack.start(arguments, subprocess.PIPE, self.output)
        timer = threading.Timer(PATIENCE * attack.options.seconds, lambda: os.kill(self.process.pid, signal.SIGKILL))
        timer.start()
        line = self.process.stdout.readline().decode()
        timer.cancel()
        self.port = int(line.rstrip("/\n").rpartition(":")[2]) if line else None

    def visit(self, path, is_session):
        """Requests all resources of a session. -> the fault, or None."""
        pages = ["/healthz", "/", "/sessions.json", "/metrics"]
        if is_session:
            files = sorted(set(re.findall(r"segment-\d{13}\.mp4", " ".join(os.listdir(path)) if path.is_dir() else "")))
            pages = [*(f"/sessions/{path.name}/{name}" for name in PAGES + files[:MAX_FILES]), "/healthz"]
        while pages:
            page = pages.pop(0)
            complaint, body = self.ask(page)
            if complaint:
                complaint, body = self.ask(page)
            if complaint or SECRET in body:
                return f"{page}: {complaint or 'shows what a link leads to'}"
            if page.endswith(".m3u8"):
                parts = sorted(set(re.findall(rb"[\w.-]+\.(?:m4s|mp4)", body)))
                pages[:0] = [f"/sessions/{path.name}/{part.decode()}" for part in parts[:MAX_FILES]]
        peak = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        if peak and int(peak[1]) >> 10 > self.attack.options.megabytes:
            return f"{int(peak[1]) >> 10} MiB resident"

    def ask(self, page):
        """-> the fault of the response, or None; the start of its body."""
        if self.port is None:
            return "does not listen", b""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE * self.attack.options.seconds)
        try:
            connection.request("GET", page)
            body = connection.getresponse().read(MAX_BODY)
        except (OSError, http.client.HTTPException) as error:
            return f"no answer ({type(error).__name__} {error})", b""
        finally:
            connection.close()
        return None, body

    def stop(self):
        """-> the fault of the server's end, or None."""
        os.kill(self.process.pid, signal.SIGTERM)
        self.process.stdout.close()
        with self.output:
            return self.attack.end(self.process, self.output)


def progress(*words):
    if sys.stderr.isatty():
        print("\r\033[K" + " ".join(words), end="", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    for name, default in (("sessions", 60), ("videos", 120), ("seed", 1), ("seconds", 10.0), ("megabytes", 300)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--scratch", type=Path, required=True)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    options.scratch.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    attack = Attack(options, Path(tempfile.mkdtemp(prefix=f"forged-{options.seed}-", dir=options.scratch.resolve())))
    sessions, videos = attack.genuine()
    forged = attack.forge(sessions, videos)
    attack.read_sessions(forged)
    attack.read_videos(videos)
    attack.serve(forged)
    progress()
    for path, _ in forged:
        if attack.kept.isdisjoint([path, path.parent]):
            shutil.rmtree(path)
    if not attack.kept:
        shutil.rmtree(attack.work)
    print(f"forged: seed {options.seed}: {options.sessions} sessions, {options.videos} videos, {attack.failures} failures, "
          f"{time.monotonic() - began:.0f} s")
    sys.exit(1 if attack.failures else 0)


if __name__ == "__main__":
    main()

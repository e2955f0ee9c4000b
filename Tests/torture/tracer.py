"""Runs a program and disturbs its nth system call on the files below a directory: kills the program before it, makes
the call fail, or runs a function. strace can do the same, but counts each thread separately and counts the loader's
calls, too.

Linux on x86-64; see ptrace(2), and syscall(2) for the registers.
"""
import ctypes
import os
import platform
import signal
import threading
from collections import namedtuple

# name: (number, arguments that are descriptors, arguments that are paths)
CALLS = {
    "read": (0, [0], []), "write": (1, [0], []), "open": (2, [], [0]), "stat": (4, [], [0]), "fstat": (5, [0], []),
    "lstat": (6, [], [0]), "pread64": (17, [0], []), "pwrite64": (18, [0], []), "flock": (73, [0], []),
    "fsync": (74, [0], []), "fdatasync": (75, [0], []), "ftruncate": (77, [0], []), "rename": (82, [], [0, 1]),
    "mkdir": (83, [], [0]), "rmdir": (84, [], [0]), "link": (86, [], [0, 1]), "unlink": (87, [], [0]),
    "chmod": (90, [], [0]), "getdents64": (217, [0], []), "openat": (257, [0], [1]), "mkdirat": (258, [0], [1]),
    "newfstatat": (262, [0], [1]), "unlinkat": (263, [0], [1]), "renameat": (264, [0, 2], [1, 3]),
    "linkat": (265, [0, 2], [1, 3]), "fchmodat": (268, [0], [1]), "syncfs": (306, [0], []),
    "renameat2": (316, [0, 2], [1, 3]), "statx": (332, [0], [1]), "openat2": (437, [0], [1]),
}
NAMES = {number: name for name, (number, _, _) in CALLS.items()}

TRACEME, POKEUSER, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 6, 24, 0x4200, 0x420E
# SYSGOOD, CLONE, EXEC, EXITKILL
OPTIONS = 0x1 | 0x8 | 0x10 | 0x100000
ORIG_RAX, RAX = 15 * 8, 10 * 8
WALL = 0x40000000

# Seconds after which a run counts as hung. The worker retries unknown failures for 90 s; a loaded machine is ten times slower.
LIMIT = 900

Call = namedtuple("Call", "name flags paths")
# status: the exit status, or the negative signal; calls: the counted calls; errors: the program's standard error
Run = namedtuple("Run", "status calls errors")


class Hangs(Exception):
    """A program that did not end in time and was killed; call: the disturbed call, if the program reached it."""
    def __init__(self, call, errors):
        super().__init__(f"not done after {LIMIT} s\n  it said: {errors.strip()}")
        self.call = call


class Info(ctypes.Structure):
    """The needed members of struct ptrace_syscall_info."""
    _fields_ = [("op", ctypes.c_uint8), ("pad", ctypes.c_uint8 * 3), ("arch", ctypes.c_uint32),
                ("ip", ctypes.c_uint64), ("sp", ctypes.c_uint64), ("nr", ctypes.c_uint64),
                ("args", ctypes.c_uint64 * 6), ("rest", ctypes.c_uint64)]


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def why_not():
    """Returns the reason why this machine cannot trace, or None."""
    if platform.machine() != "x86_64":
        return "only on x86-64"
    try:
        return None if run(["true"], "/").status == 0 else "no ptrace here"
    except OSError as error:
        return f"no ptrace here: {error}"


def ptrace(request, process, address=0, data=0):
    ctypes.set_errno(0)
    result = libc.ptrace(request, process, address, data)
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def run(command, root, counts=lambda call: True, nth=0, then=None, log=os.devnull):
    """Runs a command to its end.

    `counts` returns whether a call below root counts. `then` is the error number with which the nth of these calls
    (from 1) fails. Otherwise the program is killed before that call. If `then` is a function, it is called just before
    the kill.
    """
    with open(log, "w+b") as output:
        process = start(command, output.fileno())
        late = threading.Event()
        timer = threading.Timer(LIMIT, lambda: (late.set(), os.kill(process, signal.SIGKILL)))
        timer.start()
        try:
            status, calls = follow(process, root, counts, nth, then)
        finally:
            timer.cancel()
        output.seek(0)
        said = output.read().decode(errors="replace")
        if late.is_set():
            raise Hangs(calls[nth - 1] if 0 < nth <= len(calls) else None, said)
        return Run(status, calls, said)


def start(command, output):
    process = os.fork()
    if process == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            # LeakSanitizer does not work in a traced process.
            os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
            ptrace(TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execvp(command[0], command)
        finally:
            os._exit(126)
    _, status = os.waitpid(process, WALL)
    if not os.WIFSTOPPED(status):
        raise OSError("ptrace is not allowed")
    ptrace(SETOPTIONS, process, 0, OPTIONS)
    ptrace(SYSCALL, process)
    return process


def follow(process, root, counts, nth, then):
    calls, known, failing = [], {process}, set()
    while True:
        thread, status = os.waitpid(-1, WALL)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if thread == process:
                return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)), calls
            continue
        passed_on = 0
        try:
            if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
                info = Info()
                ptrace(GET_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info))
                if info.op == 2 and thread in failing:
                    failing.remove(thread)
                    ptrace(POKEUSER, thread, RAX, -then)
                elif info.op == 1 and info.nr in NAMES:
                    call = describe(process, info, root)
                    if call and counts(call):
                        calls.append(call)
                        if len(calls) == nth and not interfere(process, thread, then):
                            failing.add(thread)
            elif status >> 16 == 0:
                # A new thread begins with a stop. The program handles other signals itself.
                passed_on = 0 if thread not in known and os.WSTOPSIG(status) == signal.SIGSTOP else os.WSTOPSIG(status)
            known.add(thread)
            ptrace(SYSCALL, thread, 0, passed_on)
        except ProcessLookupError:
            pass  # the process was killed meanwhile


def interfere(process, thread, then):
    """Disturbs the nth call. Returns whether that ended the program."""
    if isinstance(then, int):
        ptrace(POKEUSER, thread, ORIG_RAX, -1)
        return False
    if then:
        then()
    os.kill(process, signal.SIGKILL)
    return True


def describe(process, info, root):
    """Returns the call if it operates on a path below root."""
    name = NAMES[info.nr]
    _, descriptors, places = CALLS[name]
    paths = [text(process, info.args[place]) for place in places]
    paths += [link(process, info.args[place]) for place in descriptors]
    if not any(path.startswith(root) for path in paths):
        return None
    flags = info.args[2] if name == "openat" else info.args[1] if name == "open" else 0
    return Call(name, flags, [path[len(root):] if path.startswith(root) else path for path in paths])


def text(process, address):
    memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    try:
        found = b""
        while b"\0" not in found and len(found) < 8192:
            # Reads to the end of the page: the next page may not be mapped.
            found += os.pread(memory, 4096 - (address + len(found)) % 4096, address + len(found))
        return os.fsdecode(found.split(b"\0")[0])
    except OSError:
        return ""
    finally:
        os.close(memory)


def link(process, descriptor):
    try:
        return os.readlink(f"/proc/{process}/fd/{ctypes.c_int32(descriptor).value}")
    except OSError:
        return ""

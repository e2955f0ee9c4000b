// Starts another program with limits, without files to write, and without a network.
#pragma once

#include "sandbox.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// The exit statuses of a child that did not become the program.
enum { CLINUX_NOT_CONFINED = 125, CLINUX_NOT_FOUND = 127 };

// A program to start. The lists end with a null pointer. `executable` are the program, its libraries and its loader; both lists may
// name directories, and paths that do not exist.
struct clinux_program {
  const char *path;
  char *const *arguments, *const *environment;
  const char *const *executable, *const *readable;
  unsigned long long memory_bytes, cpu_seconds;
  bool is_filtered, is_landlocked;
};

// The version of Landlock; 0 where the kernel has none.
static inline int clinux_landlock_version(void) {
  long version = syscall(444 /* landlock_create_ruleset */, NULL, 0, 1u);
  return version > 0 ? (int)version : 0;
}

// Allows access to a file, or to all below a directory. 0, or -1.
static inline int clinux_landlock_allow(int rules, const char *path, unsigned long long rights) {
  int file = open(path, 010000000 /* O_PATH */ | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
  // struct landlock_path_beneath_attr (linux/landlock.h), which is packed.
  struct __attribute__((packed)) { unsigned long long rights; int file; } rule = {rights, file};
  long result = syscall(445 /* landlock_add_rule */, rules, 1 /* LANDLOCK_RULE_PATH_BENEATH */, &rule, 0u);
  close(file);
  return (int)result;
}

// Takes away all access to files by path but to execute or to read what is named, the network, and signals to others, as far as the
// kernel can (linux/landlock.h). 0, or -1.
static inline int clinux_landlock(const char *const *executable, const char *const *readable) {
  const int version = clinux_landlock_version();
  const unsigned long long execute = 1, read_file = 4;
  struct { unsigned long long files, network, scopes; } handled = {
      (1ull << (version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13)) - 1, 3, 3};
  size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  int rules = version > 0 ? (int)syscall(444, &handled, size, 0u) : -1;
  if (rules < 0) return -1;
  int result = 0;
  for (; *executable; executable++) result |= clinux_landlock_allow(rules, *executable, execute | read_file);
  for (; *readable; readable++) result |= clinux_landlock_allow(rules, *readable, read_file);
  if (result == 0) result = (int)syscall(446 /* landlock_restrict_self */, rules, 0u);
  close(rules);
  return result;
}

// From here on only what a program needs that reads its files, computes, and writes to open descriptors. Any other system call, such
// as one that opens a file to write, a socket or a process, fails with EPERM. execve stays allowed: it has to start the program. 0,
// or -1 where the kernel has no such filters.
static inline int clinux_only_read(void) {
  if (CLINUX_ARCHITECTURE == 0) return -1;
// An open call as long as it only reads: the flags are the argument of this number.
#define CLINUX_ALLOW_READING(name, number)                                                            \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                                              \
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[number])),                \
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT | O_TRUNC, 1, 0),                      \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
  struct sock_filter filter[] = {
      CLINUX_FILTER_START,
      CLINUX_ALLOW_READING(openat, 2),
      // fcntl as far as it concerns descriptors and their flags (F_DUPFD to F_SETFL): F_SETOWN and F_SETSIG send signals to others.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, F_SETFL, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
#ifdef SYS_open
      CLINUX_ALLOW_READING(open, 1), CLINUX_ALLOW(access), CLINUX_ALLOW(stat), CLINUX_ALLOW(lstat), CLINUX_ALLOW(arch_prctl),
#endif
      CLINUX_ALLOW(execve), CLINUX_ALLOW(read), CLINUX_ALLOW(readv), CLINUX_ALLOW(pread64), CLINUX_ALLOW(lseek),
      CLINUX_ALLOW(write), CLINUX_ALLOW(writev), CLINUX_ALLOW(close), CLINUX_ALLOW(fstat), CLINUX_ALLOW(newfstatat),
      CLINUX_ALLOW(statx), CLINUX_ALLOW(faccessat), CLINUX_ALLOW(mmap), CLINUX_ALLOW(mprotect),
      CLINUX_ALLOW(munmap), CLINUX_ALLOW(mremap), CLINUX_ALLOW(brk), CLINUX_ALLOW(madvise), CLINUX_ALLOW(futex),
      CLINUX_ALLOW(set_tid_address), CLINUX_ALLOW(set_robust_list), CLINUX_ALLOW(rseq), CLINUX_ALLOW(rt_sigaction),
      CLINUX_ALLOW(rt_sigprocmask), CLINUX_ALLOW(rt_sigreturn), CLINUX_ALLOW(sigaltstack), CLINUX_ALLOW(getrandom),
      CLINUX_ALLOW(clock_gettime), CLINUX_ALLOW(gettimeofday), CLINUX_ALLOW(getrusage), CLINUX_ALLOW(sysinfo),
      CLINUX_ALLOW(uname), CLINUX_ALLOW(sched_getaffinity), CLINUX_ALLOW(sched_yield), CLINUX_ALLOW(getpid),
      CLINUX_ALLOW(gettid), CLINUX_ALLOW(restart_syscall), CLINUX_ALLOW(exit), CLINUX_ALLOW(exit_group),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
#undef CLINUX_ALLOW_READING
  return clinux_set_filter(filter, sizeof filter / sizeof filter[0]);
}

// Becomes the program, which reads from and writes to the socket. Only calls that are safe between fork and exec.
static inline void clinux_become(const struct clinux_program *program, int socket, int parent) {
  clinux_die_with_parent();
  if (getppid() != parent) _exit(CLINUX_NOT_CONFINED);
  // Its parent alone ends it: a stop of the whole group must not look like a picture that it cannot read.
  const int stops[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  for (size_t index = 0; index < sizeof stops / sizeof *stops; index++) signal(stops[index], SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // Work for people who wait comes first.
  setpriority(PRIO_PROCESS, 0, 10);
  // Above the standard ones, which may be closed: a descriptor that is its own copy stays close-on-exec.
  socket = fcntl(socket, F_DUPFD, 3);
  int null = fcntl(open("/dev/null", O_RDWR), F_DUPFD, 3);
  if (dup2(socket, 0) < 0 || dup2(socket, 1) < 0 || null < 0 || dup2(null, 2) < 0) _exit(CLINUX_NOT_CONFINED);
  closefrom(3);
  int limits = clinux_limit_memory(program->memory_bytes) | clinux_limit_cpu(program->cpu_seconds) |
               clinux_limit(RLIMIT_FSIZE, 0, 0) | clinux_limit(RLIMIT_CORE, 0, 0) | clinux_limit(RLIMIT_NOFILE, 64, 0);
  if (limits != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(CLINUX_NOT_CONFINED);
  if (program->is_landlocked && clinux_landlock(program->executable, program->readable) != 0) _exit(CLINUX_NOT_CONFINED);
  if (program->is_filtered && clinux_only_read() != 0) _exit(CLINUX_NOT_CONFINED);
  execve(program->path, program->arguments, program->environment);
  _exit(CLINUX_NOT_FOUND);
}

// Returns the process, or -1. It dies with the calling thread.
static inline int clinux_start_program(const struct clinux_program *program, int socket) {
  const int parent = getpid(), process = fork();
  if (process == 0) clinux_become(program, socket, parent);
  return process;
}

// Whether a process can be started with a filter of its system calls.
static inline bool clinux_can_filter(void) {
#if defined(__x86_64__) || defined(__aarch64__)
  unsigned action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &action) == 0;
#else
  return false;
#endif
}

// The parts of a status of waitpid(2): Swift does not see the macros.
static inline bool clinux_has_exited(int status) { return WIFEXITED(status); }
static inline int clinux_exit_status(int status) { return WEXITSTATUS(status); }
static inline int clinux_end_signal(int status) { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }

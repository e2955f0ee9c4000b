// System calls to confine a process, and to pass descriptors to another one.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

// fork(2); Swift hides it, since it is only safe in a process with a single thread.
static inline int clinux_fork(void) { return fork(); }

// memfd_create(2), close-on-exec; its size can be fixed, which a second time changes nothing.
static inline int clinux_memory_file(void) { return (int)syscall(SYS_memfd_create, "pictures", 1u | 2u); }
static inline int clinux_fix_size(int file) {
  const int get = 1034, add = 1033, size_and_seals = 1 | 2 | 4;
  return fcntl(file, get) == size_and_seals ? 0 : fcntl(file, add, size_and_seals);
}

// fallocate(2): pages that lie in there as a whole are given back, the rest becomes zero.
static inline int clinux_punch(int file, long start, long count) {
  return count == 0 ? 0 : fallocate(file, 1 | 2 /* KEEP_SIZE | PUNCH_HOLE */, start, count);
}

// Reads a byte of every sixteenth page. For each read the kernel maps the sixteen pages around it that exist, and pages of a shared
// mapping can be written then, too. Otherwise each page takes a fault of its own.
static inline void clinux_touch(const void *start, size_t count) {
  for (size_t offset = 0; offset < count; offset += 16 * 4096) (void)*((const volatile char *)start + offset);
}

// Blocks up to the first size are cut from memory that is kept until there is more than the second at its end. Every batch
// takes and gives back the same buffers; left to itself, malloc returns them to the kernel, which clears each page again for the
// next: a fault and four kilobytes of zeros every time.
static inline void clinux_keep_memory(int block, int rest) {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, block);
  mallopt(M_TRIM_THRESHOLD, rest);
#endif
}

// The start of `struct dl_phdr_info` (dl_iterate_phdr(3)), which glibc declares under _GNU_SOURCE only.
struct clinux_loaded_file { ElfW(Addr) base; const char *name; const ElfW(Phdr) *parts; ElfW(Half) count; };
struct dl_phdr_info;
extern int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *);
static inline int clinux_release_parts(struct dl_phdr_info *info, size_t size, void *unused) {
  const struct clinux_loaded_file *file = (const struct clinux_loaded_file *)info;
  for (int index = 0; index < file->count; index++) {
    const ElfW(Phdr) *part = &file->parts[index];
    if (part->p_type != PT_LOAD || part->p_flags & PF_W) continue;
    uintptr_t start = (file->base + part->p_vaddr) & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    madvise((void *)start, file->base + part->p_vaddr + part->p_memsz - start, MADV_DONTNEED);
  }
  return 0;
}
// Unmaps the pages of code and constants of all libraries; the kernel maps those again that are used. The start of the program has
// touched 20 MB of them, of which encoding uses a quarter. Parts that are writable, or were until they were relocated, stay. Private
// changes to code itself are lost: breakpoints, and relocations in code, which no library of a distribution has.
static inline void clinux_release_code(void) { dl_iterate_phdr(clinux_release_parts, NULL); }

// An affinity mask of 1 024 CPUs (sched_setaffinity(2)).
struct clinux_cpu_set { unsigned long mask[16]; };

// Pins the calling thread and another process to the CPU that the thread runs on. The two take turns, and on one CPU the second
// finds the caches warm: with pinning the sandbox costs 4 % of CPU time, without it 8 %. `last` is the CPU that the other process
// is pinned to, -1 at first. Returns the thread's mask, for clinux_unpin. If the kernel refuses, nothing is pinned.
static inline struct clinux_cpu_set clinux_pin(int process, int *last) {
  struct clinux_cpu_set before = {{0}}, one = {{0}};
  unsigned cpu = 0;
  if (syscall(SYS_sched_getaffinity, 0, sizeof before, &before) < 0 || syscall(SYS_getcpu, &cpu, NULL, NULL) != 0 ||
      cpu >= 8 * sizeof one)
    return (struct clinux_cpu_set){{0}};
  one.mask[cpu / (8 * sizeof(long))] = 1ul << cpu % (8 * sizeof(long));
  syscall(SYS_sched_setaffinity, 0, sizeof one, &one);
  if ((int)cpu != *last) syscall(SYS_sched_setaffinity, process, sizeof one, &one);
  *last = (int)cpu;
  return before;
}
// Gives the calling thread its mask back. The kernel ignores an empty one.
static inline void clinux_unpin(struct clinux_cpu_set before) {
  syscall(SYS_sched_setaffinity, 0, sizeof before, &before);
}

static inline int clinux_socket_pair(int sockets[2]) {
  return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets);
}
static inline int clinux_stream_pair(int sockets[2]) {
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
}

// Sends one message with up to two descriptors; the number of bytes, or -1.
static inline long clinux_send(int socket, const void *bytes, size_t count, const int *descriptors, int number) {
  struct iovec part = {(void *)bytes, count};
  char control[CMSG_SPACE(2 * sizeof(int))] = {0};
  struct msghdr message = {0};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (number > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE((size_t)number * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN((size_t)number * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors, (size_t)number * sizeof(int));
  }
  long sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent;
}

// Receives one message; descriptors that did not come are -1.
static inline long clinux_receive(int socket, void *bytes, size_t count, int descriptors[2]) {
  struct iovec part = {bytes, count};
  char control[CMSG_SPACE(2 * sizeof(int))] = {0};
  struct msghdr message = {0};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  descriptors[0] = descriptors[1] = -1;
  // A socket with a timeout reports EINTR even after SIGSTOP and SIGCONT (signal(7)): a frozen machine must not end the worker.
  long received;
  do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  struct cmsghdr *header = received >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    memcpy(descriptors, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
  return received;
}

// The whole group dies with its parent.
static inline int clinux_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, 9 /* SIGKILL */); }

// So much, and a little more before the kernel kills; or less, where there is less already, which nobody may undo.
static inline int clinux_limit(int resource, unsigned long long value, unsigned long long more) {
  struct rlimit limit;
  if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return -1;
  if (limit.rlim_max > value + more) limit.rlim_max = value + more;
  limit.rlim_cur = limit.rlim_max < value ? limit.rlim_max : value;
  return setrlimit((__rlimit_resource_t)resource, &limit);
}
static inline int clinux_limit_memory(unsigned long long bytes) { return clinux_limit(RLIMIT_AS, bytes, 0); }
// At the first limit SIGXCPU, which says what it was; a little later SIGKILL.
static inline int clinux_limit_cpu(unsigned long long seconds) {
  return clinux_limit(RLIMIT_CPU, seconds, 10);
}
static inline int clinux_limit_files(void) {
  return clinux_limit(RLIMIT_FSIZE, 0, 0) | clinux_limit(RLIMIT_NOFILE, 0, 0) | clinux_limit(RLIMIT_NPROC, 0, 0) |
         clinux_limit(RLIMIT_CORE, 0, 0);
}

// Raises the limit of open descriptors to the hard limit, at most to 65 536: each job in the sandbox needs about ten.
static inline void clinux_raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit((__rlimit_resource_t)RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit((__rlimit_resource_t)RLIMIT_NOFILE, &limit);
}

// An error that getppid(2) never has.
enum { CLINUX_FILTERED = EOWNERDEAD };
// Whether the filter of clinux_only_compute decides on the system calls of this process. A kernel, or an emulation of one, may
// accept a filter and ignore it.
static inline int clinux_is_filtered(void) { return syscall(SYS_getppid) == -1 && errno == CLINUX_FILTERED; }

// The beginning of a filter of system calls: it ends a process of another architecture, and reads the number of the call.
#if defined(__x86_64__)
#define CLINUX_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CLINUX_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define CLINUX_ARCHITECTURE 0  // not known: no filter
#endif
#define CLINUX_FILTER_START                                                \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)), \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLINUX_ARCHITECTURE, 1, 0),      \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),                 \
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define CLINUX_ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// Puts a filter in force. The process has to have no new privileges (PR_SET_NO_NEW_PRIVS). 0, or -1.
static inline int clinux_set_filter(struct sock_filter *filter, unsigned short count) {
  struct sock_fprog program = {count, filter};
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &program);
}

// From here on only what computing needs: memory, the descriptors that are open, and the end. Anything else, such as opening a
// file, a socket or a process, ends the process at once. 0, or -1 where the kernel has no such filters.
static inline int clinux_only_compute(void) {
  if (CLINUX_ARCHITECTURE == 0) return -1;
// mmap and mprotect as long as they do not make code: the third argument has no PROT_EXEC (4).
#define CLINUX_ALLOW_DATA(name)                                                                          \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                                                 \
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),                        \
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),       \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
  struct sock_filter filter[] = {
      CLINUX_FILTER_START,
      // The answer of the filter itself, for clinux_is_filtered.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (CLINUX_FILTERED & SECCOMP_RET_DATA)),
      CLINUX_ALLOW(read), CLINUX_ALLOW(write), CLINUX_ALLOW(munmap), CLINUX_ALLOW(mremap), CLINUX_ALLOW(brk),
      CLINUX_ALLOW(madvise), CLINUX_ALLOW(futex), CLINUX_ALLOW(exit), CLINUX_ALLOW(exit_group),
      CLINUX_ALLOW(rt_sigreturn), CLINUX_ALLOW(rt_sigprocmask), CLINUX_ALLOW(clock_gettime), CLINUX_ALLOW(getrandom),
      CLINUX_ALLOW(sched_yield), CLINUX_ALLOW(sched_getaffinity), CLINUX_ALLOW(restart_syscall), CLINUX_ALLOW(gettid),
      CLINUX_ALLOW_DATA(mmap), CLINUX_ALLOW_DATA(mprotect),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
#undef CLINUX_ALLOW_DATA
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return clinux_set_filter(filter, sizeof filter / sizeof filter[0]);
}

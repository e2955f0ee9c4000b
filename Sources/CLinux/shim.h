// Linux calls that the Glibc overlay of Swift does not show.
#pragma once

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

// renameat2(2) with RENAME_NOREPLACE (1): glibc declares it under _GNU_SOURCE only, which a module cannot ask for.
static inline int clinux_rename_noreplace(const char *from, const char *to) {
  return (int)syscall(SYS_renameat2, -100 /* AT_FDCWD */, from, -100, to, 1u);
}

// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS: glibc has no wrapper.
struct clinux_open_how { unsigned long long flags, mode, resolve; };
static inline int clinux_open_beneath(int directory, const char *path, int flags) {
  struct clinux_open_how how = { (unsigned long long)(unsigned)flags, 0, 0x08 | 0x04 };
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

// A descriptor that becomes readable when SIGTERM or SIGINT arrives; both are blocked in the calling thread
// and in every thread it starts later.
static inline int clinux_termination_descriptor(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (pthread_sigmask(SIG_BLOCK, &set, 0) != 0) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// A descriptor with which one thread wakes another that polls. (The flags are enumerators of an anonymous enum that
// the importer gives a type of its own.)
static inline int clinux_wake_descriptor(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline void clinux_wake(int descriptor) { (void)eventfd_write(descriptor, 1); }

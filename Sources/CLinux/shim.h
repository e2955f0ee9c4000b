// Linux calls that Swift's Glibc overlay does not export.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

// Parses an HTTP date; returns unix seconds, or 0 if the text is none. glibc declares strptime(3) under _XOPEN_SOURCE
// only.
extern char *strptime(const char *text, const char *format, struct tm *parts);
static inline long clinux_http_time(const char *text) {
  struct tm parts = { 0 };
  return strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &parts) ? (long)timegm(&parts) : 0;
}

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

// openat(2) with O_PATH, which glibc declares under _GNU_SOURCE only: finds a file, through links too, and does not open it.
static inline int clinux_find(int directory, const char *path) {
  return openat(directory, path, 010000000 | O_CLOEXEC);
}

// dup3(2) with O_CLOEXEC, which glibc declares under _GNU_SOURCE only.
static inline int clinux_duplicate(int file, int number) { return (int)syscall(SYS_dup3, file, number, O_CLOEXEC); }

// open(2) with O_TMPFILE, which glibc declares under _GNU_SOURCE only. The file may get a name later: it has the mode of a new file.
static inline int clinux_open_unnamed(const char *directory) {
  return open(directory, 020000000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0644);
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

// Returns a descriptor that tells of SIGHUP, or -1. Call it before any thread is started.
static inline int clinux_hangup_descriptor(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  if (pthread_sigmask(SIG_BLOCK, &set, 0) != 0) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC);
}

// Blocks all signals while threads are started, until clinux_restore_signals. Otherwise such a thread could receive a
// SIGTERM that is meant for the signal descriptor, and the process would end.
static inline int clinux_block_signals(sigset_t *before) {
  sigset_t all;
  sigfillset(&all);
  return pthread_sigmask(SIG_BLOCK, &all, before);
}
static inline void clinux_restore_signals(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, 0); }

// Whether a file is on a network file system: other hosts see written data only after fsync.
static inline int clinux_is_remote(int file) {
  struct statfs status;
  if (fstatfs(file, &status) != 0) return 0;
  const unsigned type = (unsigned)status.f_type;
  return type == 0x6969u /* NFS */ || type == 0xFF534D42u || type == 0xFE534D42u /* SMB */;
}

// Whether one syncfs(2) makes all files of a file system survive a power cut and reports a failed write, as fsync(2) does for each
// file: disks of this host, and Linux 5.8 or later. glibc declares syncfs under _GNU_SOURCE only.
extern int syncfs(int file);
static inline int clinux_syncs_all_files(int file) {
  struct utsname system;
  int major = 0, minor = 0;
  if (uname(&system) != 0 || sscanf(system.release, "%d.%d", &major, &minor) != 2) return 0;
  if (major < 5 || (major == 5 && minor < 8)) return 0;
  struct statfs status;
  if (fstatfs(file, &status) != 0) return 0;
  switch ((unsigned)status.f_type) {
  case 0xEF53u: /* ext4 */
  case 0x58465342u: /* XFS */
  case 0x9123683Eu: /* Btrfs */
  case 0x01021994u: /* tmpfs */
    return 1;
  default:
    return 0;
  }
}

// Whether inotify tells nothing of some changes to the files of a file system: those by other hosts, or by its own server.
static inline int clinux_hides_changes(int file) {
  struct statfs status;
  if (fstatfs(file, &status) != 0) return 1;
  switch ((unsigned)status.f_type) {
  case 0x6969u: /* NFS */
  case 0x517Bu: /* SMB, old */
  case 0xFF534D42u:
  case 0xFE534D42u: /* SMB */
  case 0x65735546u: /* FUSE: sshfs, rclone, buckets */
  case 0x01021997u: /* 9P: folders of a virtual machine's host */
  case 0x786F4256u: /* VirtualBox */
  case 0x00C36400u: /* Ceph */
  case 0x5346414Fu: /* AFS */
    return 1;
  default:
    return 0;
  }
}

// A descriptor with which one thread wakes another thread that polls. (The flags are enumerators of an anonymous enum,
// which the importer gives a type of its own.)
static inline int clinux_wake_descriptor(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline void clinux_wake(int descriptor) { (void)eventfd_write(descriptor, 1); }

// memmem(3): glibc declares it under _GNU_SOURCE only.
extern void *memmem(const void *, size_t, const void *, size_t);

// The environment, terminated by a null pointer: Swift 6 refuses to read a global variable of C.
extern char **environ;
static inline char **clinux_environment(void) { return environ; }

// Calls the functions of CLinux that carry numbers or structures of their own, and prints what they did. scripts/arm64
// compares the lines of both architectures. An emulator may lack a system call; its line then ends with "ENOSYS".

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox.h"
#include "shim.h"

static void tell(const char *name, int is_good, int code) {
  if (is_good) printf("%s ok\n", name);
  else if (code == ENOSYS) printf("%s ENOSYS\n", name);
  else printf("%s FAILED %d\n", name, code);
}
#define TELL(name, condition) do { errno = 0; int good_ = (condition); tell(name, good_, errno); } while (0)

static int write_file(const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return file >= 0 && write(file, "12345678", 8) == 8 && close(file) == 0;
}

static int opens(int directory, const char *path, int wanted) {
  int file = clinux_open_beneath(directory, path, O_RDONLY | O_CLOEXEC), code = errno;
  if (file >= 0) close(file);
  errno = code;
  return wanted == 0 ? file >= 0 : file < 0 && code == wanted;
}

static void files(void) {
  char folder[] = "/tmp/arm64-XXXXXX";
  if (!mkdtemp(folder) || chdir(folder) != 0) exit(73);
  TELL("files", write_file("one") && write_file("two") && symlink("one", "link") == 0);
  TELL("rename over a file", clinux_rename_noreplace("one", "two") < 0 && errno == EEXIST);
  TELL("rename", clinux_rename_noreplace("two", "three") == 0 && access("two", F_OK) < 0);
  int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  TELL("open beneath", opens(here, "one", 0));
  TELL("open a link beneath", opens(here, "link", ELOOP));
  TELL("open a parent beneath", opens(here, "../..", EXDEV));
  int unnamed = clinux_open_unnamed(".");
  TELL("unnamed file", unnamed >= 0);
  TELL("unnamed file is a file", ({ struct stat status; fstat(unnamed, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0777) == 0644 && status.st_nlink == 0; }));
  TELL("file system", !clinux_is_remote(here) && !clinux_hides_changes(here));
  unlink("one"), unlink("three"), unlink("link");
  if (chdir("/") != 0 || rmdir(folder) != 0) exit(73);
}

static void memory(void) {
  const size_t size = 1 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
  int file = clinux_memory_file();
  TELL("memory file", file >= 0 && ftruncate(file, (off_t)size) == 0);
  TELL("fixed size", clinux_fix_size(file) == 0);
  TELL("fixed size again", clinux_fix_size(file) == 0);
  TELL("size stays", ftruncate(file, (off_t)size / 2) < 0 && errno == EPERM);
  unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) exit(71);
  memset(bytes, 7, size);
  TELL("hole", clinux_punch(file, (long)page / 2, (long)(2 * page)) == 0 && bytes[page / 2 - 1] == 7 && bytes[page / 2] == 0 &&
                   bytes[page / 2 + 2 * page - 1] == 0 && bytes[page / 2 + 2 * page] == 7);
  clinux_touch(bytes, size);
  clinux_keep_memory(1 << 20, 1 << 22);
  clinux_release_code();
  TELL("code after release", strlen("12345678") == 8 && bytes[size - 1] == 7);
}

static void messages(void) {
  int packets[2], streams[2], ends[2], got[2];
  char text[8] = "";
  struct stat sent, received;
  TELL("packets", clinux_socket_pair(packets) == 0);
  TELL("streams", clinux_stream_pair(streams) == 0);
  if (pipe(ends) != 0) exit(71);
  TELL("send descriptors", clinux_send(packets[0], "1234", 4, ends, 2) == 4);
  TELL("receive descriptors", clinux_receive(packets[1], text, sizeof text, got) == 4 && memcmp(text, "1234", 4) == 0 && got[0] >= 0 && got[1] >= 0);
  TELL("same pipe", fstat(ends[0], &sent) == 0 && fstat(got[0], &received) == 0 && sent.st_ino == received.st_ino);
  TELL("closed on exec", fcntl(got[1], F_GETFD) == FD_CLOEXEC);
  TELL("send one descriptor", clinux_send(streams[0], "5", 1, ends, 1) == 1);
  TELL("receive one descriptor", clinux_receive(streams[1], text, sizeof text, got) == 1 && got[0] >= 0 && got[1] == -1);
  TELL("send none", clinux_send(streams[0], "6", 1, NULL, 0) == 1 && clinux_receive(streams[1], text, sizeof text, got) == 1 && got[0] == -1);
}

static int code_of(int (*body)(void)) {
  int process = clinux_fork(), status = -1;
  if (process == 0) _exit(body());
  return waitpid(process, &status, 0) == process ? status : -1;
}
static int limits(void) {
  struct rlimit limit;
  if (clinux_limit_files() != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max != 0) return 1;
  if (clinux_limit_cpu(100) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_cur != 100 || limit.rlim_max != 110) return 2;
  return open("/", O_RDONLY) < 0 && errno == EMFILE ? 0 : 3;
}
static int parent_death(void) {
  int signal = 0;
  return clinux_die_with_parent() == 0 && prctl(PR_GET_PDEATHSIG, &signal) == 0 && signal == 9 ? 0 : 1;
}
static int pins(void) {
  int last = -1;
  struct clinux_cpu_set before = clinux_pin(getpid(), &last), now = {{0}};
  if (last < 0 || syscall(SYS_sched_getaffinity, 0, sizeof now, &now) < 0) return 1;
  if (now.mask[last / 64] != 1ul << last % 64) return 2;
  // The call above has also pinned the process; this gives it its mask back.
  clinux_unpin(before);
  return syscall(SYS_sched_getaffinity, 0, sizeof now, &now) > 0 && memcmp(&now, &before, sizeof now) == 0 ? 0 : 3;
}
static int raises(void) {
  struct rlimit limit;
  clinux_raise_descriptor_limit();
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= (limit.rlim_max < 65536 ? limit.rlim_max : 65536) ? 0 : 1;
}
static int hears(int (*descriptor)(void), int signal) {
  int file = descriptor();
  struct pollfd wait = {file, POLLIN, 0};
  return file >= 0 && kill(getpid(), signal) == 0 && poll(&wait, 1, 10000) == 1 ? 0 : 1;
}
static int hears_end(void) { return hears(clinux_termination_descriptor, SIGTERM); }
static int hears_hangup(void) { return hears(clinux_hangup_descriptor, SIGHUP); }

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  files();
  memory();
  messages();
  TELL("limits", code_of(limits) == 0);
  TELL("death with the parent", code_of(parent_death) == 0);
  TELL("pin", code_of(pins) == 0);
  TELL("descriptor limit", code_of(raises) == 0);
  TELL("SIGTERM", code_of(hears_end) == 0);
  TELL("SIGHUP", code_of(hears_hangup) == 0);
  TELL("not filtered", !clinux_is_filtered());
  TELL("date", clinux_http_time("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
  int wake = clinux_wake_descriptor();
  struct pollfd wait = {wake, POLLIN, 0};
  clinux_wake(wake);
  TELL("wake", poll(&wait, 1, 10000) == 1);
  TELL("environment", clinux_environment() != NULL);
  return 0;
}

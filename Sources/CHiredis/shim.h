// hiredis, the client library of Redis, loaded when a queue is used; a worker with a spool does not need it.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define CHR_FUNCTIONS(f)                                                                \
  f(redisConnectWithTimeout) f(redisConnectUnixWithTimeout) f(redisSetTimeout)          \
      f(redisEnableKeepAlive) f(redisFree) f(redisCommandArgv) f(freeReplyObject)

typedef struct chr_library {
#define CHR_DECLARE(name) __typeof__(name) *name;
  CHR_FUNCTIONS(CHR_DECLARE)
#undef CHR_DECLARE
} chr_library;

// The layout of replies and connections differs between releases: only the release of our header is loaded.
#define CHR_TEXT(text) #text
#define CHR_NAME(version) "libhiredis.so." CHR_TEXT(version)
static inline const char *chr_name(void) { return CHR_NAME(HIREDIS_SONAME); }

// Returns NULL, or the reason why the library cannot be loaded.
static inline const char *chr_load(chr_library *library) {
  void *loaded = dlopen(chr_name(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return dlerror();
#define CHR_BIND(name) \
  if (!(library->name = (__typeof__(name) *)dlsym(loaded, #name))) return dlerror();
  CHR_FUNCTIONS(CHR_BIND)
#undef CHR_BIND
  return NULL;
}

// Opens a connection; check its `err`. Returns NULL when memory is exhausted. Child processes do not inherit the
// socket.
static inline redisContext *chr_connect(
    const chr_library *library, const char *socket, const char *host, int port, int seconds) {
  struct timeval patience = {seconds, 0};
  redisContext *context = socket ? library->redisConnectUnixWithTimeout(socket, patience)
                                 : library->redisConnectWithTimeout(host, port, patience);
  if (!context || context->err) return context;
  fcntl(context->fd, F_SETFD, FD_CLOEXEC);
  library->redisSetTimeout(context, patience);
  if (!socket) library->redisEnableKeepAlive(context);
  return context;
}

// Sends a command. Returns its reply, or NULL: the reason is in the context, and errno in `code`. hiredis writes
// without MSG_NOSIGNAL, so a closed connection would end the process with SIGPIPE: this thread blocks the signal
// meanwhile.
static inline redisReply *chr_command(
    const chr_library *library, redisContext *context, int count, const char **words, const size_t *sizes, int *code) {
  sigset_t broken, before, waiting;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  sigpending(&waiting);
  pthread_sigmask(SIG_BLOCK, &broken, &before);
  errno = 0;
  redisReply *reply = (redisReply *)library->redisCommandArgv(context, count, words, sizes);
  *code = errno;
  if (!reply && !sigismember(&waiting, SIGPIPE)) {
    const struct timespec now = {0, 0};
    while (sigtimedwait(&broken, NULL, &now) < 0 && errno == EINTR) {}
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return reply;
}

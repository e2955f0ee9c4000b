// hiredis, Redis' own client, loaded when a queue is asked: who works from a directory needs none.
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

// The layout of a reply and of a connection differs from one release to the next: only the one of our header will do.
#define CHR_TEXT(text) #text
#define CHR_NAME(version) "libhiredis.so." CHR_TEXT(version)
static inline const char *chr_name(void) { return CHR_NAME(HIREDIS_SONAME); }

// NULL, or why it is not there.
static inline const char *chr_load(chr_library *library) {
  void *loaded = dlopen(chr_name(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return dlerror();
#define CHR_BIND(name) \
  if (!(library->name = (__typeof__(name) *)dlsym(loaded, #name))) return dlerror();
  CHR_FUNCTIONS(CHR_BIND)
#undef CHR_BIND
  return NULL;
}

// A connection, whose `err` says whether it is one; NULL without memory. Programs that are started do not get it.
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

// A command and its reply; NULL when there is none, with the reason in the context, and its number in `code`. The library writes
// to its socket as to a file, and who has hung up would end the process with SIGPIPE: this thread does not take it meanwhile.
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

// hiredis, the client library of Redis, loaded when a queue is used; a worker with a spool does not need it.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdlib.h>

#define CHR_FUNCTIONS(f)                                                          \
  f(redisConnectWithTimeout) f(redisConnectUnixWithTimeout) f(redisEnableKeepAlive) \
      f(redisFree) f(redisReaderCreate) f(redisReaderFeed) f(redisReaderGetReply)   \
      f(redisReaderFree) f(freeReplyObject)

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
  if (!socket) library->redisEnableKeepAlive(context);
  return context;
}

#if HIREDIS_MAJOR < 1
typedef int chr_count;
#else
typedef size_t chr_count;
#endif

// A reader of replies that allocates no array of more elements than it is allowed: hiredis 0.14 allocates what the
// server names.
typedef struct chr_reader {
  redisReader *reader;
  redisReplyObjectFunctions functions;
  void *(*create_array)(const redisReadTask *, chr_count);
  // Elements that the reply may still have, and whether it named more.
  size_t elements;
  int has_refused;
} chr_reader;

static inline void *chr_create_array(const redisReadTask *task, chr_count count) {
  chr_reader *reader = (chr_reader *)task->privdata;
  if ((size_t)count > reader->elements) {
    reader->has_refused = 1;
    return NULL;
  }
  reader->elements -= (size_t)count;
  return reader->create_array(task, count);
}

// Returns NULL when memory is exhausted.
static inline chr_reader *chr_reader_create(const chr_library *library) {
  chr_reader *reader = (chr_reader *)calloc(1, sizeof(chr_reader));
  if (!reader) return NULL;
  reader->reader = library->redisReaderCreate();
  if (!reader->reader) {
    free(reader);
    return NULL;
  }
  reader->functions = *reader->reader->fn;
  reader->create_array = reader->functions.createArray;
  reader->functions.createArray = chr_create_array;
  reader->reader->fn = &reader->functions;
  reader->reader->privdata = reader;
  return reader;
}

static inline void chr_reader_free(const chr_library *library, chr_reader *reader) {
  library->redisReaderFree(reader->reader);
  free(reader);
}

// Feeds bytes of a reply. Returns false if they are no reply, or memory is exhausted: the reader's `errstr` says why.
// `reply` is NULL until it is whole.
static inline int chr_feed(
    const chr_library *library, chr_reader *reader, const char *bytes, size_t count, redisReply **reply) {
  *reply = NULL;
  return library->redisReaderFeed(reader->reader, bytes, count) == REDIS_OK
      && library->redisReaderGetReply(reader->reader, (void **)reply) == REDIS_OK;
}

// GNU libmicrohttpd, loaded when a server starts: it needs a dozen libraries that are not needed otherwise.
#pragma once

#include <dlfcn.h>
#include <microhttpd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CMH_FUNCTIONS(f)                                                                                      \
  f(MHD_start_daemon) f(MHD_stop_daemon) f(MHD_create_response_from_buffer)             \
      f(MHD_create_response_from_callback) f(MHD_add_response_header) f(MHD_queue_response)             \
          f(MHD_destroy_response) f(MHD_lookup_connection_value) f(MHD_get_connection_values) f(MHD_get_connection_info) \
              f(MHD_http_unescape)

// An immutable table of functions.
typedef struct __attribute__((swift_attr("@Sendable"))) cmh_library {
#define CMH_DECLARE(name) __typeof__(name) *name;
  CMH_FUNCTIONS(CMH_DECLARE)
#undef CMH_DECLARE
} cmh_library;

// Returns NULL, or the reason why the library cannot be loaded.
static inline const char *cmh_load(cmh_library *library) {
  void *loaded = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return dlerror();
#define CMH_BIND(name) \
  if (!(library->name = (__typeof__(name) *)dlsym(loaded, #name))) return dlerror();
  CMH_FUNCTIONS(CMH_BIND)
#undef CMH_BIND
  return NULL;
}

// Discards the library's log messages: they report clients that disconnect, which is normal.
static inline void cmh_silence(void *nothing, const char *format, va_list values) {
  (void)nothing, (void)format, (void)values;
}

// Decodes percent signs in place; the context is the library's function. Text with %00 stays encoded, because it would
// end the C string early; it matches no path of ours, since those have no percent sign.
static inline size_t cmh_unescape(void *unescape, struct MHD_Connection *connection, char *text) {
  (void)connection;
  return strstr(text, "%00") ? strlen(text) : ((size_t(*)(char *))unescape)(text);
}

// Limits of a server.
typedef struct cmh_limits {
  unsigned connections;
  unsigned connectionsOfAnAddress;
  // The server closes a connection without traffic after this many seconds.
  unsigned idleSeconds;
} cmh_limits;

// Starts a thread for each connection, so that none waits for the film of another one. Returns NULL on failure.
// Swift cannot call the library's variadic function.
static inline struct MHD_Daemon *cmh_start(
    const cmh_library *library, int listening, const cmh_limits *limits, MHD_AccessHandlerCallback handler,
    MHD_NotifyConnectionCallback connected, MHD_RequestCompletedCallback completed, void *context) {
  return library->MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0,
      NULL, NULL, handler, context,
      MHD_OPTION_EXTERNAL_LOGGER, cmh_silence, NULL, MHD_OPTION_LISTEN_SOCKET, listening, MHD_OPTION_CONNECTION_LIMIT,
      limits->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits->connectionsOfAnAddress,
      MHD_OPTION_CONNECTION_TIMEOUT, limits->idleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10),
      MHD_OPTION_THREAD_STACK_SIZE, (size_t)(1 << 20), MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
      cmh_unescape, (void *)library->MHD_http_unescape, MHD_OPTION_NOTIFY_CONNECTION, connected, context, MHD_OPTION_NOTIFY_COMPLETED, completed,
      context, MHD_OPTION_END);
}

static inline int cmh_is_start(enum MHD_ConnectionNotificationCode event) { return event == MHD_CONNECTION_NOTIFY_STARTED; }

// Returns the socket of a connection, or -1.
static inline int cmh_descriptor(const cmh_library *library, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = library->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? (int)info->connect_fd : -1;
}

// The counts of the headers that name a request's host and delimit its body.
typedef struct cmh_framing {
  int hosts, lengths, codings;
} cmh_framing;

static inline enum MHD_Result cmh_count(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
  cmh_framing *framing = (cmh_framing *)context;
  (void)kind, (void)value;
  if (!strcasecmp(name, "Host")) framing->hosts++;
  if (!strcasecmp(name, "Content-Length")) framing->lengths++;
  if (!strcasecmp(name, "Transfer-Encoding")) framing->codings++;
  return MHD_YES;
}

static inline cmh_framing cmh_framing_of(const cmh_library *library, struct MHD_Connection *connection) {
  cmh_framing framing = {0, 0, 0};
  library->MHD_get_connection_values(connection, MHD_HEADER_KIND, cmh_count, &framing);
  return framing;
}

static inline const char *cmh_header(const cmh_library *library, struct MHD_Connection *connection, const char *name) {
  return library->MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// Returns an argument of the request's address; the library decodes percent signs, and makes a space of each plus sign.
static inline const char *cmh_argument(const cmh_library *library, struct MHD_Connection *connection, const char *name) {
  return library->MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

// A part of an open file.
typedef struct cmh_part {
  int file;
  unsigned long long offset;
} cmh_part;

// Ends the connection if the file has become shorter; sendfile(2), the library's default, does not report that.
static inline ssize_t cmh_read_part(void *context, uint64_t position, char *buffer, size_t most) {
  const cmh_part *part = (const cmh_part *)context;
  ssize_t count = pread(part->file, buffer, most, (off_t)(part->offset + position));
  return count > 0 ? count : MHD_CONTENT_READER_END_WITH_ERROR;
}
static inline void cmh_close_part(void *context) {
  close(((cmh_part *)context)->file);
  free(context);
}
static inline struct MHD_Response *cmh_file_response(
    const cmh_library *library, size_t count, int file, unsigned long long offset) {
  cmh_part *part = (cmh_part *)malloc(sizeof *part);
  if (!part) return NULL;
  part->file = file;
  part->offset = offset;
  struct MHD_Response *response =
      library->MHD_create_response_from_callback(count, 32 << 10, cmh_read_part, part, cmh_close_part);
  if (!response) free(part);
  return response;
}

// Sends copied bytes, or `count` bytes of an open file, which it closes afterwards. Returns whether the response was
// queued.
static inline int cmh_send(
    const cmh_library *library, struct MHD_Connection *connection, unsigned status, const void *bytes, size_t count,
    int file, unsigned long long offset, const char *const *headers, size_t headerCount) {
  struct MHD_Response *response =
      file >= 0 && count > 0 ? cmh_file_response(library, count, file, offset)
                : library->MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
  if (file >= 0 && (!response || count == 0)) close(file);
  if (!response) return 0;
  for (size_t index = 0; index + 1 < headerCount; index += 2)
    library->MHD_add_response_header(response, headers[index], headers[index + 1]);
  int queued = library->MHD_queue_response(connection, status, response) == MHD_YES;
  library->MHD_destroy_response(response);
  return queued;
}

// GNU libmicrohttpd, loaded when a server starts: it needs a dozen libraries that are not needed otherwise.
#pragma once

#include <arpa/inet.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000  // Linux, poll(2); the header has it for GNU sources only
#endif

#define CMH_FUNCTIONS(f)                                                                                      \
  f(MHD_start_daemon) f(MHD_stop_daemon) f(MHD_create_response_from_buffer)             \
      f(MHD_create_response_from_callback) f(MHD_add_response_header) f(MHD_queue_response)             \
          f(MHD_destroy_response) f(MHD_lookup_connection_value) f(MHD_lookup_connection_value_n)             \
              f(MHD_get_connection_values_n)             \
              f(MHD_get_connection_info) f(MHD_http_unescape) f(MHD_get_version)

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
// end the C string early. A path with an encoded slash or backslash stays encoded, too: the server refuses it.
static inline size_t cmh_unescape(void *unescape, struct MHD_Connection *connection, char *text) {
  (void)connection;
  for (const char *at = text; (at = strchr(at, '%')); at++) {
    int is_separator = !strncasecmp(at, "%2f", 3) || !strncasecmp(at, "%5c", 3);
    if (!strncmp(at, "%00", 3) || (text[0] == '/' && is_separator)) return strlen(text);
  }
  return ((size_t(*)(char *))unescape)(text);
}

// Limits of a server.
typedef struct cmh_limits {
  unsigned connections;
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
      limits->connections, MHD_OPTION_CONNECTION_TIMEOUT, limits->idleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10),
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

// Returns a number for the address of a client: an IPv4 address, or the /64 network of an IPv6 address, which one client has for itself.
static inline uint64_t cmh_network(const cmh_library *library, struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = library->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  const struct sockaddr *address = info ? info->client_addr : NULL;
  uint64_t network = 0;
  if (!address) return 0;
  if (address->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
  if (address->sa_family != AF_INET6) return 0;
  const uint8_t *bytes = ((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr;
  static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
  int isMapped = !memcmp(bytes, mapped, sizeof mapped);
  for (int index = 0; index < (isMapped ? 4 : 8); index++) network = network << 8 | bytes[isMapped ? 12 + index : index];
  return network;
}

// Returns the bytes that were sent and that the client's system has not acknowledged, and sets the number of bytes that it has acknowledged
// since the connection was opened. Returns 0 if the kernel does not count them.
static inline int cmh_unread(int descriptor, uint64_t *taken) {
  // struct tcp_info of linux/tcp.h, from Linux 4.1 on. Not all headers of the C library have tcpi_bytes_acked.
  enum { TCP = 6, INFO = 11, BYTES_ACKED = 120 };
  char info[BYTES_ACKED + sizeof *taken];
  socklen_t size = sizeof info;
  int unread = 0;
  if (ioctl(descriptor, TIOCOUTQ, &unread) != 0 || unread <= 0) return 0;
  if (getsockopt(descriptor, TCP, INFO, info, &size) != 0 || size < sizeof info) return 0;
  memcpy(taken, info + BYTES_ACKED, sizeof *taken);
  return unread;
}

// Lets the close of a socket drop all bytes that the client has not taken.
static inline void cmh_discard_at_close(int descriptor) {
  struct linger now = {1, 0};
  (void)setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

// Whether the client has closed a connection.
//
// A client that is gone and one that only sends nothing more (shutdown(2), `nc -N`) look alike: both have sent a FIN. TCP answers new data
// with a reset if no process reads it (RFC 9293, 3.10.7.4), so one byte of urgent data is sent. Clients that do not ask for urgent data
// never see it: it is no part of the stream that read(2) returns. A second byte could become a part of it.
//
// - is_probed: whether the byte was sent; 0 at the first call of a request.
static inline int cmh_is_client_gone(const cmh_library *library, struct MHD_Connection *connection, int *is_probed) {
  struct pollfd socket = {cmh_descriptor(library, connection), POLLRDHUP, 0};
  if (poll(&socket, 1, 0) <= 0) return 0;
  if (socket.revents & POLLRDHUP && !(socket.revents & (POLLHUP | POLLERR)) && !*is_probed) {
    *is_probed = send(socket.fd, "\n", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    // A client on the same machine has answered by now, another one before a later call.
    poll(&socket, 1, 0);
  }
  return (socket.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

// The counts of a request's headers that decide its host and its length, or that others may read in another way.
typedef struct cmh_headers {
  int hosts, lengths, codings, chunked;
  // Headers that continue on the next line.
  int folded;
  // Headers whose name or value has a character that is not allowed there, such as white space before the colon.
  int malformed;
  // Headers of one value that come for the second time.
  int repeated;
} cmh_headers;

typedef struct cmh_header_check {
  cmh_headers headers;
  // Whether the library is of a version that keeps headers in its buffer as they came, and does not refuse malformed ones.
  int is_lenient;
  // The end of the last header's value; NULL before the first one.
  const char *end;
  // The headers of one value that have come: a bit for each of their list.
  unsigned seen;
} cmh_header_check;

// Whether a name is a token (RFC 9110, 5.6.2).
static inline int cmh_is_token(const char *name, size_t size) {
  static const char others[] = "!#$%&'*+-.^_`|~";
  for (size_t index = 0; index < size; index++) {
    char c = name[index];
    int is_letter = (c | 32) >= 'a' && (c | 32) <= 'z', is_digit = c >= '0' && c <= '9';
    if (!is_letter && !is_digit && (!c || !strchr(others, c))) return 0;
  }
  return size > 0;
}

// Whether a value has no control character but the tab (RFC 9110, 5.5).
static inline int cmh_is_value(const char *value, size_t size) {
  for (size_t index = 0; index < size; index++) {
    unsigned char c = (unsigned char)value[index];
    if ((c < 32 && c != '\t') || c == 127) return 0;
  }
  return 1;
}

// Whether a header is on one line. libmicrohttpd 0.9 appends the second line to the header's name, in other memory, and leaves the
// value where it was. In all other headers only a colon, which the library replaces by a zero, and white space are between both.
static inline int cmh_is_on_a_line(const char *name, size_t size, const char *value) {
  if ((uintptr_t)value <= (uintptr_t)(name + size)) return 0;
  size_t between = (size_t)(value - name) - size - 1;
  // The library's buffer is smaller.
  if (between > 32 << 10) return 0;
  for (const char *at = name + size + 1; at < value; at++)
    if (*at != ' ' && *at != '\t') return 0;
  return 1;
}

static inline enum MHD_Result cmh_check_header(
    void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value, size_t value_size) {
  cmh_header_check *check = (cmh_header_check *)context;
  cmh_headers *headers = &check->headers;
  (void)kind;
  if (!value) value = "", value_size = 0;
  else if (check->is_lenient) {
    if (!cmh_is_on_a_line(name, name_size, value)) headers->folded++;
    // Only the end of a line is between two headers; otherwise a NUL hides a part of a line.
    if (check->end && (uintptr_t)name - (uintptr_t)check->end - 1 > 1) headers->malformed++;
    check->end = value + value_size;
  }
  if (!cmh_is_token(name, name_size) || !cmh_is_value(value, value_size)) headers->malformed++;
  static const char *const single[] = {
      "Authorization", "Content-Type", "Content-Encoding", "Content-Digest", "Idempotency-Key", "Date", "Origin", "traceparent"};
  for (unsigned index = 0; index < sizeof single / sizeof *single; index++) {
    if (strcasecmp(name, single[index])) continue;
    if (check->seen & 1u << index) headers->repeated++;
    check->seen |= 1u << index;
  }
  if (!strcasecmp(name, "Host")) headers->hosts++;
  if (!strcasecmp(name, "Content-Length")) headers->lengths++;
  if (!strcasecmp(name, "Transfer-Encoding")) {
    headers->codings++;
    if (!strcasecmp(value, "chunked")) headers->chunked++;
  }
  return MHD_YES;
}

// - method: the first byte of the request in the library's buffer.
static inline cmh_headers cmh_headers_of(
    const cmh_library *library, struct MHD_Connection *connection, const char *method) {
  // From 1.0 on, the library refuses folded lines, NUL and empty names itself.
  cmh_header_check check = {{0, 0, 0, 0, 0, 0, 0}, !strncmp(library->MHD_get_version(), "0.9.", 4), NULL, 0};
  library->MHD_get_connection_values_n(connection, MHD_HEADER_KIND, cmh_check_header, &check);
  const union MHD_ConnectionInfo *size =
      check.end ? library->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) : NULL;
  // Two ends of lines are behind the last header. The library ends the headers at a line without a name, too.
  if (size && (uintptr_t)method + size->header_size - (uintptr_t)check.end - 2 > 2) check.headers.malformed++;
  return check.headers;
}

static inline const char *cmh_header(const cmh_library *library, struct MHD_Connection *connection, const char *name) {
  return library->MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// Returns an argument of the request's address, empty if it has no value: `?changed-only`. The library decodes percent signs, and makes a
// space of each plus sign.
static inline const char *cmh_argument(const cmh_library *library, struct MHD_Connection *connection, const char *name) {
  const char *value = NULL;
  size_t length;
  if (library->MHD_lookup_connection_value_n(
          connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, &length) != MHD_YES)
    return NULL;
  return value ? value : "";
}

#define CMH_ARGUMENTS 64

typedef struct cmh_arguments {
  const char *names[CMH_ARGUMENTS];
  int count, repeated;
} cmh_arguments;

static inline enum MHD_Result cmh_check_argument(
    void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value, size_t value_size) {
  cmh_arguments *arguments = (cmh_arguments *)context;
  (void)kind, (void)name_size, (void)value, (void)value_size;
  for (int index = 0; index < arguments->count; index++)
    if (!strcmp(arguments->names[index], name ? name : "")) arguments->repeated = 1;
  if (arguments->count == CMH_ARGUMENTS) arguments->repeated = 1;
  else arguments->names[arguments->count++] = name ? name : "";
  return arguments->repeated ? MHD_NO : MHD_YES;
}

// Whether an argument of the request's address comes twice, or there are too many.
static inline int cmh_repeats_argument(const cmh_library *library, struct MHD_Connection *connection) {
  cmh_arguments arguments = {{0}, 0, 0};
  library->MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, cmh_check_argument, &arguments);
  return arguments.repeated;
}

// A part of an open file.
typedef struct cmh_part {
  int file;
  unsigned long long offset;
  // Keeps the file open, until `release` is called with it.
  void *owner;
  void (*release)(void *owner);
} cmh_part;

// Ends the connection if the file has become shorter; sendfile(2), the library's default, does not report that.
static inline ssize_t cmh_read_part(void *context, uint64_t position, char *buffer, size_t most) {
  const cmh_part *part = (const cmh_part *)context;
  ssize_t count = pread(part->file, buffer, most, (off_t)(part->offset + position));
  return count > 0 ? count : MHD_CONTENT_READER_END_WITH_ERROR;
}
static inline void cmh_release_part(void *context) {
  cmh_part *part = (cmh_part *)context;
  part->release(part->owner);
  free(part);
}

static inline int cmh_queue(
    const cmh_library *library, struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
    const char *const *headers, size_t headerCount) {
  if (!response) return 0;
  for (size_t index = 0; index + 1 < headerCount; index += 2)
    library->MHD_add_response_header(response, headers[index], headers[index + 1]);
  int queued = library->MHD_queue_response(connection, status, response) == MHD_YES;
  library->MHD_destroy_response(response);
  return queued;
}

// Sends copied bytes. Returns whether the response was queued.
static inline int cmh_send(
    const cmh_library *library, struct MHD_Connection *connection, unsigned status, const void *bytes, size_t count,
    const char *const *headers, size_t headerCount) {
  struct MHD_Response *response =
      library->MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
  return cmh_queue(library, connection, status, response, headers, headerCount);
}

// Sends `count` bytes of a file, and releases its owner afterwards. Returns whether the response was queued.
static inline int cmh_send_part(
    const cmh_library *library, struct MHD_Connection *connection, unsigned status, size_t count, cmh_part part,
    const char *const *headers, size_t headerCount) {
  cmh_part *copy = count > 0 ? (cmh_part *)malloc(sizeof *copy) : NULL;
  struct MHD_Response *response = NULL;
  if (copy) {
    *copy = part;
    response = library->MHD_create_response_from_callback(count, 32 << 10, cmh_read_part, copy, cmh_release_part);
  }
  if (!response) {
    free(copy);
    part.release(part.owner);
    if (count == 0) return cmh_send(library, connection, status, NULL, 0, headers, headerCount);
  }
  return cmh_queue(library, connection, status, response, headers, headerCount);
}

// Sends bytes on a connection whose response the library does not take: before the end of the body. Never waits.
static inline void cmh_send_early(int descriptor, const void *bytes, size_t count) {
  if (descriptor >= 0) (void)send(descriptor, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Reads the rest of a body that nobody wants, for a short time, after the response. If a socket with unread data is closed, the kernel
// sends a reset, and the client may lose the response (RFC 9112, 9.6).
static inline void cmh_drain(const cmh_library *library, struct MHD_Connection *connection, int milliseconds) {
  int descriptor = cmh_descriptor(library, connection);
  char dropped[16 << 10];
  struct timespec now, end;
  if (descriptor < 0 || clock_gettime(CLOCK_MONOTONIC, &end) != 0) return;
  end.tv_sec += milliseconds / 1000;
  shutdown(descriptor, SHUT_WR);
  do {
    struct pollfd socket = {descriptor, POLLIN, 0};
    if (poll(&socket, 1, 100) > 0 && recv(descriptor, dropped, sizeof dropped, MSG_DONTWAIT) <= 0) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

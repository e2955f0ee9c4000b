// Simulates a library call that never returns, allocates without end, exits, or runs out of memory. Linux with glibc.
//
//     clang -shared -fPIC -O1 -Wall -Wextra -Werror hostile_library.c -o hostile_library.so
//     HOSTILE_CALL=avcodec_send_packet HOSTILE_WAY=sleep LD_PRELOAD=$PWD/hostile_library.so encoder-worker …
//
// HOSTILE_CALL   The call to replace: a name from CALLS below. Unset: no call is hostile.
// HOSTILE_WAY    sleep (default): wait forever without CPU time. spin: loop forever. allocate: fill memory in steps of 1 MiB,
//                and continue when malloc fails. exit: _exit(1). nomemory: return the error that means "out of memory".
// HOSTILE_MARK   Only calls with this text are hostile (default: all). The text is searched in: the name of the archive entry
//                (archive_read_next_header), the packet (avcodec_send_packet, av_read_frame), the picture size of the codec
//                such as 180x320 (avcodec_send_packet, avcodec_receive_packet), the path of the file (fsync).
//                The worker removes JPEG comments: write the text into an unused quantization table instead.
// HOSTILE_AFTER  The number of calls with the mark that run normally first (default: 0).
// HOSTILE_TIMES  The number of hostile calls after that (default: unlimited). A process and its forks count together.
#define _GNU_SOURCE
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma weak archive_entry_pathname  // Weak: the loader accepts a process without these libraries.
#pragma weak archive_set_error
#pragma weak av_packet_unref
#define CALLS(X) X(archive_read_next_header) X(avcodec_send_packet) X(avcodec_receive_packet) X(av_read_frame) X(fsync)
#define ID(name) id_##name,
#define ENTRY(name) {#name, name, NULL},
#define REAL(name) ((__typeof__(name) *)calls[id_##name].real)
enum { CALLS(ID) call_count };
static struct { const char *name; void *replacement, *real; } calls[] = {CALLS(ENTRY)};

enum { SLEEP, SPIN, ALLOCATE, EXIT, NO_MEMORY, way_count };
static const char *const ways[] = {"sleep", "spin", "allocate", "exit", "nomemory"};
static __typeof__(dlsym) *real_dlsym;
static int hostile_call = -1, way = SLEEP;
static const char *mark;
static long after, times;
static atomic_long *matches;  // In shared memory, for the forks.

// Reads the settings and finds the real calls at the start: a confined process cannot open files. The constructor of another
// library can call dlsym before this constructor runs, so dlsym calls it too.
__attribute__((constructor)) static void prepare(void) {
  if (real_dlsym) return;
  // The version of the symbol: glibc 2.34 and later; x86-64 before; arm64 before.
  const char *versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  for (int i = 0; !real_dlsym && i < 3; i++) real_dlsym = (__typeof__(dlsym) *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  for (int i = 0; i < call_count; i++) calls[i].real = real_dlsym(RTLD_NEXT, calls[i].name);
  const char *call = getenv("HOSTILE_CALL"), *how = getenv("HOSTILE_WAY"), *count;
  if (!call) return;
  for (hostile_call = 0; hostile_call < call_count && strcmp(call, calls[hostile_call].name);) hostile_call++;
  while (how && way < way_count && strcmp(how, ways[way])) way++;
  if (hostile_call == call_count || way == way_count) {
    dprintf(2, "hostile_library: unknown HOSTILE_CALL or HOSTILE_WAY\n");
    _exit(64);
  }
  mark = getenv("HOSTILE_MARK");
  after = (count = getenv("HOSTILE_AFTER")) ? atol(count) : 0;
  times = (count = getenv("HOSTILE_TIMES")) ? atol(count) : LONG_MAX - after;
  matches = mmap(NULL, sizeof *matches, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

// Returns whether this call has to report a lack of memory; does not return for the other hostile ways.
static int is_hostile(int call, const AVCodecContext *codec, const void *bytes, size_t count) {
  if (call != hostile_call) return 0;
  char size[32] = "";
  if (codec) snprintf(size, sizeof size, "%dx%d", codec->width, codec->height);
  if (mark && !strstr(size, mark) && !(bytes && memmem(bytes, count, mark, strlen(mark)))) return 0;
  long number = atomic_fetch_add(matches, 1);
  if (number < after || number >= after + times) return 0;
  static int word, *volatile block;
  if (way == EXIT) _exit(1);
  // A futex wait: the filter of a confined process permits it, but neither pause nor nanosleep.
  while (way == SLEEP) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL);
  while (way == SPIN) atomic_signal_fence(memory_order_seq_cst);
  while (way == ALLOCATE) if ((block = malloc(1 << 20))) memset(block, 1, 1 << 20);
  return 1;
}

int archive_read_next_header(struct archive *archive, struct archive_entry **entry) {
  int status = REAL(archive_read_next_header)(archive, entry);
  const char *name = status == ARCHIVE_OK ? archive_entry_pathname(*entry) : NULL;
  if (!is_hostile(id_archive_read_next_header, NULL, name, name ? strlen(name) : 0)) return status;
  archive_set_error(archive, ENOMEM, "Can't allocate memory");
  return ARCHIVE_FATAL;
}
int avcodec_send_packet(AVCodecContext *codec, const AVPacket *packet) {
  int status = REAL(avcodec_send_packet)(codec, packet);  // An image decoder knows the picture size only after the call.
  const uint8_t *data = packet ? packet->data : NULL;
  return is_hostile(id_avcodec_send_packet, codec, data, data ? packet->size : 0) ? AVERROR(ENOMEM) : status;
}
int avcodec_receive_packet(AVCodecContext *codec, AVPacket *packet) {
  if (is_hostile(id_avcodec_receive_packet, codec, NULL, 0)) return AVERROR(ENOMEM);
  return REAL(avcodec_receive_packet)(codec, packet);
}
int av_read_frame(AVFormatContext *format, AVPacket *packet) {
  int status = REAL(av_read_frame)(format, packet);
  if (!is_hostile(id_av_read_frame, NULL, status < 0 ? NULL : packet->data, status < 0 ? 0 : packet->size)) return status;
  av_packet_unref(packet);
  return AVERROR(ENOMEM);
}
int fsync(int file) {
  char link[32], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t count = hostile_call == id_fsync ? readlink(link, path, sizeof path) : 0;
  return is_hostile(id_fsync, NULL, path, count < 0 ? 0 : count) ? (errno = ENOMEM, -1) : REAL(fsync)(file);
}

// The worker finds libavformat with dlopen and dlsym, which LD_PRELOAD alone does not redirect.
void *dlsym(void *restrict library, const char *restrict name) {
  prepare();
  for (int i = 0; i < call_count; i++)
    if (!strcmp(name, calls[i].name)) return (calls[i].real = real_dlsym(library, name)) ? calls[i].replacement : NULL;
  // A jump, not a call: the real dlsym looks at its caller for RTLD_NEXT.
  __attribute__((musttail)) return real_dlsym(library, name);
}

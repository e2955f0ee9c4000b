// The part of FFmpeg that Swift cannot import by itself: function-like macros, 64-bit macros with casts, and
// what is used of libavformat. Each line has its reason; everything else is called directly, but nothing of libavformat: it is not
// linked, only loaded.
#pragma once

#include <dlfcn.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libavutil/sha.h>
#include <libswscale/swscale.h>

// Macros with casts or expressions that the importer skips (libavutil/error.h, libavutil/avutil.h).
static inline int cff_error_eagain(void) { return AVERROR(EAGAIN); }
static inline int cff_error_enomem(void) { return AVERROR(ENOMEM); }
static inline int cff_error_eof(void) { return AVERROR_EOF; }
static inline int cff_error_invalid_data(void) { return AVERROR_INVALIDDATA; }
static inline int cff_error_patch_welcome(void) { return AVERROR_PATCHWELCOME; }
static inline int cff_error_decoder_not_found(void) { return AVERROR_DECODER_NOT_FOUND; }
static inline int cff_error_encoder_not_found(void) { return AVERROR_ENCODER_NOT_FOUND; }
static inline int64_t cff_no_pts(void) { return AV_NOPTS_VALUE; }
static inline int cff_seek_size(void) { return AVSEEK_SIZE; }

// Enumerators and flags that are macros with shifts (libavcodec/avcodec.h).
static inline int cff_flag_global_header(void) { return AV_CODEC_FLAG_GLOBAL_HEADER; }
static inline int cff_strict_input(void) {
  return AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
}
static inline int cff_packet_key(void) { return AV_PKT_FLAG_KEY; }
static inline int cff_packet_is_key(const AVPacket *packet) { return (packet->flags & AV_PKT_FLAG_KEY) != 0; }
static inline int cff_packet_is_discarded(const AVPacket *packet) { return (packet->flags & AV_PKT_FLAG_DISCARD) != 0; }

// What is used of libavformat. It is loaded when a file is to be read: of the libraries that it needs, some forty, most are for
// networks, and to load them takes longer than to encode a segment.
#if LIBAVFORMAT_VERSION_INT < AV_VERSION_INT(60, 15, 100)
#define CFF_FORMAT_SIDE_DATA(X) X(av_stream_get_side_data)
#else
#define CFF_FORMAT_SIDE_DATA(X)
#endif
#define CFF_FORMAT_FUNCTIONS(X)                                                                        \
  X(av_find_input_format) X(av_guess_sample_aspect_ratio) X(av_read_frame) X(av_seek_frame)             \
  X(avformat_alloc_context) X(avformat_close_input) X(avformat_open_input) X(avio_alloc_context)        \
  X(avio_context_free) CFF_FORMAT_SIDE_DATA(X)
typedef struct {
#define CFF_DECLARE(name) __typeof__(name) *name;
  CFF_FORMAT_FUNCTIONS(CFF_DECLARE)
#undef CFF_DECLARE
} cff_format;

// NULL, or why the library that we were built with is not there.
static inline const char *cff_load_format(cff_format *format) {
  void *library = dlopen("libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
#define CFF_BIND(name) \
  if (!(format->name = (__typeof__(name) *)dlsym(library, #name))) return dlerror();
  CFF_FORMAT_FUNCTIONS(CFF_BIND)
#undef CFF_BIND
  return NULL;
}

// How a track is to be turned or mirrored, or NULL; where this is said has changed with libavformat 60.15.
static inline const int32_t *cff_display_matrix(const cff_format *format, const AVStream *stream) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVPacketSideData *found = av_packet_side_data_get(
      stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return found ? (const int32_t *)found->data : NULL;
#else
  return (const int32_t *)format->av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, NULL);
#endif
}

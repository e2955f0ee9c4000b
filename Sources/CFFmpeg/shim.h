// The part of FFmpeg that Swift cannot import by itself: function-like macros, 64-bit macros with casts, and
// the functions of libavformat. libavformat is loaded at run time, not linked; Swift calls the other libraries
// directly.
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

// av_parser_init takes an int up to FFmpeg 8 and an enum AVCodecID from 9 on, which Swift imports as two types.
static inline AVCodecParserContext *cff_parser_init(enum AVCodecID codec) { return av_parser_init(codec); }

// A libswscale context: an opaque struct up to FFmpeg 7 and a public one from 8 on, and its flags are macros or an enum.
// Swift imports them as different types, so that both stay behind a pointer without a type.
static inline void *cff_scaler_alloc(void) { return sws_alloc_context(); }
static inline void cff_scaler_free(void *scaler) { sws_freeContext((struct SwsContext *)scaler); }
static inline int cff_scaler_init(void *scaler) { return sws_init_context((struct SwsContext *)scaler, NULL, NULL); }
// Full precision, and chroma averaged from all its pixels instead of every second one.
static inline int64_t cff_scaler_exact_flags(void) {
  return SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;
}
// Sets the matrices (SWS_CS_…) and ranges; brightness, contrast and saturation stay neutral.
static inline int cff_scaler_set_colours(
    void *scaler, int source_matrix, int source_is_full, int target_matrix, int target_is_full) {
  return sws_setColorspaceDetails(
      (struct SwsContext *)scaler, sws_getCoefficients(source_matrix), source_is_full,
      sws_getCoefficients(target_matrix), target_is_full, 0, 1 << 16, 1 << 16);
}
// Converts a whole picture of `rows` rows.
static inline int cff_scaler_scale(
    void *scaler, const uint8_t *const source[], const int source_strides[], int rows, uint8_t *const target[],
    const int target_strides[]) {
  return sws_scale((struct SwsContext *)scaler, source, source_strides, 0, rows, target, target_strides);
}

// The functions of libavformat in use. It is loaded when a file has to be read: it needs some forty libraries, mostly
// for networks, and loading them takes longer than encoding a segment.
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

// Returns NULL, or the reason why the library of the version that we were built with cannot be loaded.
static inline const char *cff_load_format(cff_format *format) {
  void *library = dlopen("libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
#define CFF_BIND(name) \
  if (!(format->name = (__typeof__(name) *)dlsym(library, #name))) return dlerror();
  CFF_FORMAT_FUNCTIONS(CFF_BIND)
#undef CFF_BIND
  return NULL;
}

// Returns the display matrix of a track (rotation and mirroring), or NULL; libavformat 60.15 moved it.
static inline const int32_t *cff_display_matrix(const cff_format *format, const AVStream *stream) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVPacketSideData *found = av_packet_side_data_get(
      stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return found ? (const int32_t *)found->data : NULL;
#else
  return (const int32_t *)format->av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, NULL);
#endif
}

// The part of FFmpeg that Swift cannot import by itself: function-like macros, 64-bit macros with casts, and
// inline wrappers for option dictionaries. Each line has its reason; everything else is called directly.
#pragma once

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

// How a track is to be turned or mirrored, or NULL; where this is said has changed with libavformat 60.15.
static inline const int32_t *cff_display_matrix(const AVStream *stream) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVPacketSideData *found = av_packet_side_data_get(
      stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  return found ? (const int32_t *)found->data : NULL;
#else
  return (const int32_t *)av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, NULL);
#endif
}

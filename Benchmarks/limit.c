// Measures the minimum cost of decoding and encoding: the same decoder, encoder and settings, and nothing else. There
// is no check of the input, no timing track, and no fsync.
//
//     cc -O2 limit.c -o limit $(pkg-config --cflags --libs libavcodec libavutil)
//     ./limit PRESET CRF X264-PARAMS OUT < PLAN
//
// PLAN has two kinds of lines. `segment` ends the current encoder and opens another one. `PTS PATH` encodes a JPEG in
// 4:2:0 at PTS, in ticks of 1/90 000 s; it is decoded and converted to limited range unless the line before has the
// same PATH. OUT is the byte stream of all segments, in order. Prints the bytes, and the CPU milliseconds of decoding
// and of encoding.
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void must(int result, const char *what) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, av_err2str(result));
  exit(1);
}

// Converts full range to the limited range that is encoded: black is 16, white 235.
static void limit_range(AVFrame *frame) {
  must(av_frame_make_writable(frame), "av_frame_make_writable");
  for (int plane = 0; plane < 3; plane++) {
    int columns = plane ? (frame->width + 1) / 2 : frame->width, rows = plane ? (frame->height + 1) / 2 : frame->height;
    uint16_t factor = plane ? 224 : 219, offset = (plane ? 128 * (255 - 224) : 16 * 255) + 128;
    for (int row = 0; row < rows; row++) {
      uint8_t *samples = frame->data[plane] + row * frame->linesize[plane];
      for (int column = 0; column < columns; column++) {
        uint16_t sum = samples[column] * factor + offset;
        samples[column] = (uint16_t)(sum + (sum >> 8)) >> 8;
      }
    }
  }
}

static AVFrame *decode(const char *path, AVPacket *packet) {
  FILE *file = fopen(path, "rb");
  if (!file) must(AVERROR(errno), path);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  must(av_new_packet(packet, size), "av_new_packet");
  if (fread(packet->data, 1, size, file) != (size_t)size) must(AVERROR(EIO), path);
  fclose(file);
  AVCodecContext *decoder = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_MJPEG));
  decoder->thread_count = 1;
  must(avcodec_open2(decoder, decoder->codec, NULL), "open the decoder");
  AVFrame *frame = av_frame_alloc();
  must(avcodec_send_packet(decoder, packet), path);
  must(avcodec_receive_frame(decoder, frame), path);
  av_packet_unref(packet);
  avcodec_free_context(&decoder);
  frame->format = AV_PIX_FMT_YUV420P;
  frame->pict_type = AV_PICTURE_TYPE_NONE;
  // Pads odd sides to even ones; the padding needs no particular content.
  frame->width += frame->width & 1;
  frame->height += frame->height & 1;
  limit_range(frame);
  return frame;
}

static AVCodecContext *open_encoder(const AVFrame *frame, char **settings) {
  AVCodecContext *encoder = avcodec_alloc_context3(avcodec_find_encoder_by_name("libx264"));
  encoder->width = frame->width;
  encoder->height = frame->height;
  encoder->pix_fmt = AV_PIX_FMT_YUV420P;
  encoder->color_range = AVCOL_RANGE_MPEG;
  encoder->time_base = (AVRational){1, 90000};
  encoder->framerate = (AVRational){1, 1};
  encoder->thread_count = 1;
  encoder->max_b_frames = 0;
  must(av_opt_set(encoder->priv_data, "preset", settings[0], 0), "preset");
  must(av_opt_set(encoder->priv_data, "crf", settings[1], 0), "crf");
  must(av_opt_set(encoder->priv_data, "x264-params", settings[2], 0), "x264-params");
  must(avcodec_open2(encoder, encoder->codec, NULL), "open the encoder");
  return encoder;
}

static long drain(AVCodecContext *encoder, AVPacket *packet, FILE *out) {
  long bytes = 0;
  while (avcodec_receive_packet(encoder, packet) == 0) {
    bytes += packet->size;
    if (out) fwrite(packet->data, 1, packet->size, out);
    av_packet_unref(packet);
  }
  return bytes;
}

int main(int count, char **arguments) {
  if (count != 5) return 64;
  av_log_set_level(AV_LOG_ERROR);
  // Keep memory as the worker does. Otherwise the kernel clears the buffers of large pictures again for each segment.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  FILE *out = fopen(arguments[4], "wb");
  AVPacket *packet = av_packet_alloc();
  AVCodecContext *encoder = NULL;
  double decoding = 0, encoding = 0;
  long bytes = 0;
  char line[4096], last[4096] = "";
  AVFrame *frame = NULL;
  for (;;) {
    char *more = fgets(line, sizeof line, stdin);
    if (encoder && (!more || !strncmp(line, "segment", 7))) {
      double start = now();
      must(avcodec_send_frame(encoder, NULL), "end");
      bytes += drain(encoder, packet, out);
      avcodec_free_context(&encoder);
      encoding += now() - start;
    }
    if (!more) break;
    if (!strncmp(line, "segment", 7)) continue;
    line[strcspn(line, "\n")] = 0;
    char *path = strchr(line, ' ') + 1;
    double start = now();
    if (strcmp(path, last)) {
      av_frame_free(&frame);
      frame = decode(path, packet);
      strcpy(last, path);
    }
    double decoded = now();
    if (!encoder) encoder = open_encoder(frame, arguments + 1);
    frame->pts = atoll(line);
    must(avcodec_send_frame(encoder, frame), "encode");
    bytes += drain(encoder, packet, out);
    decoding += decoded - start;
    encoding += now() - decoded;
  }
  fclose(out);
  printf("%ld %.3f %.3f\n", bytes, decoding, encoding);
  return 0;
}

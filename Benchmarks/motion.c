// Codes a session with x264 itself, to measure what vectors of scrolls and delta pictures could save (motion.py).
//
//     cc -O2 motion.c -o motion $(pkg-config --cflags --libs x264 libavcodec libavutil)
//     ./motion CRF X264-PARAMS OUT WAY VALUE < PLAN
//
// PLAN is that of limit.c. The ways:
//     decode   decodes only
//     find     decodes, and finds vectors
//     all      x264 codes all pictures, as the worker does
//     scroll   the same, but searches VALUE times as far as the found vector, in pictures that have one
//     rest     x264 codes only pictures of which a share below VALUE equals the picture coded last in the segment
//     star     x264 codes the other ones, each behind that picture in an encoder of its own
//     keys     x264 codes only the first picture of each segment
// Prints the bytes of all pictures and of key frames, the coded pictures, those with a vector, and the mean shares of
// macroblocks that are near-equal in place and moved.
#define main limit_main
#include "limit.c"
#undef main
#include <emmintrin.h>
#include <x264.h>

// A line is hashed four times, each time from the mean levels of four of its sixteen parts.
enum { PARTS = 16, HASHES = 4, SLOTS = 4096, DEEP = 4, LONGEST = 4096, LEAST_VOTES = 32, MOST_VECTORS = 3, NEAR = 2 };

typedef struct {
  int width, height;
  uint8_t *planes[3];
} Picture;

// Writes the mean level of each part of each row, in fourths.
static void row_means(const Picture *picture, uint16_t *means) {
  int part = picture->width / PARTS / 8 * 8;
  for (int row = 0; row < picture->height; row++)
    for (int number = 0; number < PARTS; number++) {
      const uint8_t *samples = picture->planes[0] + row * picture->width + number * part;
      __m128i sum = _mm_setzero_si128();
      for (int column = 0; column < part; column += 8)
        sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm_loadl_epi64((const void *)(samples + column)), _mm_setzero_si128()));
      means[row * PARTS + number] = part ? 4 * _mm_cvtsi128_si32(sum) / part : 0;
    }
}

static unsigned hash(const uint16_t *means, int number) {
  unsigned value = number + 1;
  for (int part = number; part < PARTS; part += HASHES) value = value * 2654435761u + ((means[part] + 8) >> 4);
  return value;
}

// Finds by how many rows parts of a picture moved. Returns their number. Rows that did not change have no vote, nor rows
// that the picture before has often.
static int find_vectors(const Picture *now, const Picture *old, int *vectors) {
  static uint16_t means[2][LONGEST * PARTS];
  static unsigned keys[HASHES][SLOTS][DEEP];
  static int votes[2 * LONGEST + 1], rows[HASHES][SLOTS][DEEP], used[HASHES][SLOTS];
  int count = now->height, found = 0;
  if (count > LONGEST) return 0;
  row_means(now, means[0]);
  row_means(old, means[1]);
  memset(votes, 0, sizeof votes);
  memset(used, 0, sizeof used);
  for (int row = 0; row < count; row++)
    for (int number = 0; number < HASHES; number++) {
      unsigned key = hash(means[1] + row * PARTS, number), slot = (key >> 8) % SLOTS;
      int place = used[number][slot]++;
      if (place >= DEEP) continue;
      keys[number][slot][place] = key;
      rows[number][slot][place] = row;
    }
  for (int row = 0; row < count; row++) {
    const uint16_t *new = means[0] + row * PARTS, *before = means[1] + row * PARTS;
    int difference = 0;
    for (int part = 0; part < PARTS; part++) difference += abs(new[part] - before[part]);
    for (int number = 0; number < HASHES && difference >= 2 * PARTS; number++) {
      unsigned key = hash(new, number), slot = (key >> 8) % SLOTS;
      for (int place = 0; place < used[number][slot] && used[number][slot] <= DEEP; place++)
        if (keys[number][slot][place] == key) votes[LONGEST + rows[number][slot][place] - row]++;
    }
  }
  votes[LONGEST] = 0;
  while (found < MOST_VECTORS) {
    int best = 0;
    for (int place = 0; place <= 2 * LONGEST; place++)
      if (votes[place] > votes[best]) best = place;
    if (votes[best] < LEAST_VOTES) break;
    vectors[found++] = best - LONGEST;
    for (int place = best - 3; place <= best + 3; place++)
      if (place >= 0 && place <= 2 * LONGEST) votes[place] = 0;
  }
  return found;
}

static int near_block(const uint8_t *one, const uint8_t *other, int stride) {
  __m128i sum = _mm_setzero_si128();
  for (int row = 0; row < 8; row++, one += stride, other += stride)
    sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm_loadl_epi64((const void *)one), _mm_loadl_epi64((const void *)other)));
  return _mm_cvtsi128_si32(sum) <= 64 * NEAR;
}

// Whether each 8×8 block of a macroblock differs from the one `down` rows below it before by at most two levels a sample.
static int near_macroblock(const Picture *now, const Picture *old, int column, int row, int down) {
  int width = now->width, half = width / 2, from = row * width + column, to = from + down * width;
  if (row + down < 0 || row + down + 16 > now->height) return 0;
  for (int block = 0; block < 4; block++) {
    int offset = (block >> 1) * 8 * width + (block & 1) * 8;
    if (!near_block(now->planes[0] + from + offset, old->planes[0] + to + offset, width)) return 0;
  }
  from = row / 2 * half + column / 2, to = (row + down) / 2 * half + column / 2;
  return near_block(now->planes[1] + from, old->planes[1] + to, half) && near_block(now->planes[2] + from, old->planes[2] + to, half);
}

// Sets the shares of macroblocks that are near-equal in place, and moved by a vector.
static void cover(const Picture *now, const Picture *old, const int *vectors, int count, double *still, double *moved) {
  int all = 0, places = 0, moves = 0;
  for (int row = 0; row + 16 <= now->height; row += 16)
    for (int column = 0; column + 16 <= now->width; column += 16, all++) {
      int same = near_macroblock(now, old, column, row, 0), moving = 0;
      for (int number = 0; number < count && !same && !moving; number++)
        moving = near_macroblock(now, old, column, row, vectors[number]);
      places += same;
      moves += moving;
    }
  *still = (double)places / all;
  *moved = (double)moves / all;
}

static Picture keep(const AVFrame *frame) {
  Picture picture = {frame->width, frame->height, {0}};
  for (int plane = 0; plane < 3; plane++) {
    int columns = plane ? frame->width / 2 : frame->width, rows = plane ? frame->height / 2 : frame->height;
    picture.planes[plane] = malloc((size_t)columns * rows);
    for (int row = 0; row < rows; row++)
      memcpy(picture.planes[plane] + row * columns, frame->data[plane] + row * frame->linesize[plane], columns);
  }
  return picture;
}

static void discard(Picture *picture) {
  for (int plane = 0; plane < 3; plane++) free(picture->planes[plane]);
  memset(picture, 0, sizeof *picture);
}

typedef struct {
  x264_t *x264;
  FILE *out;
  long bytes, keys, pictures;
  int range;
} Coder;

// Codes a picture, or what is left, and writes what comes out.
static void step(Coder *coder, x264_picture_t *input) {
  x264_picture_t picture;
  x264_nal_t *units;
  int count, size = x264_encoder_encode(coder->x264, &units, &count, input, &picture);
  if (size < 0) must(AVERROR_EXTERNAL, "x264_encoder_encode");
  if (!size) return;
  fwrite(units[0].p_payload, size, 1, coder->out);
  coder->bytes += size;
  if (picture.b_keyframe) coder->keys += size;
}

// As libavcodec opens it, with the worker's settings.
static void begin(Coder *coder, const Picture *picture, char **settings) {
  x264_param_t param;
  x264_param_default_preset(&param, "superfast", NULL);
  param.i_log_level = X264_LOG_ERROR;
  param.i_width = picture->width;
  param.i_height = picture->height;
  param.i_fps_num = param.i_fps_den = param.i_timebase_num = param.i_threads = 1;
  param.i_timebase_den = 90000;
  param.i_bframe = 0;
  param.rc.i_rc_method = X264_RC_CRF;
  param.rc.f_rf_constant = atof(settings[0]);
  char *parameters = strdup(settings[1]);
  for (char *name = strtok(parameters, ":"); name; name = strtok(NULL, ":")) {
    char *value = strchr(name, '=');
    if (value) *value++ = 0;
    if (x264_param_parse(&param, name, value)) must(AVERROR(EINVAL), name);
  }
  free(parameters);
  coder->x264 = x264_encoder_open(&param);
  if (!coder->x264) must(AVERROR_EXTERNAL, "x264_encoder_open");
  coder->range = 0;
}

static void end(Coder *coder) {
  if (!coder->x264) return;
  while (x264_encoder_delayed_frames(coder->x264)) step(coder, NULL);
  x264_encoder_close(coder->x264);
  coder->x264 = NULL;
}

// Codes a picture, with a search of this range; 0 for the worker's own.
static void code(Coder *coder, const Picture *picture, int64_t pts, int range) {
  x264_picture_t input;
  if (range != coder->range) {
    x264_param_t param;
    x264_encoder_parameters(coder->x264, &param);
    param.analyse.i_me_method = range ? X264_ME_UMH : X264_ME_DIA;
    param.analyse.i_me_range = range ? range : 16;
    if (x264_encoder_reconfig(coder->x264, &param)) must(AVERROR_EXTERNAL, "x264_encoder_reconfig");
    coder->range = range;
  }
  x264_picture_init(&input);
  input.img.i_csp = X264_CSP_I420;
  input.img.i_plane = 3;
  input.i_pts = pts;
  for (int plane = 0; plane < 3; plane++) {
    input.img.plane[plane] = picture->planes[plane];
    input.img.i_stride[plane] = plane ? picture->width / 2 : picture->width;
  }
  step(coder, &input);
  coder->pictures++;
}

int main(int count, char **arguments) {
  if (count != 6) return 64;
  av_log_set_level(AV_LOG_ERROR);
  const char *way = arguments[4];
  double value = atof(arguments[5]), still = 0, moved = 0, places = 0, moves = 0;
  int coding = strcmp(way, "decode") && strcmp(way, "find"), star = !strcmp(way, "star"), scroll = !strcmp(way, "scroll");
  int shares = star || !strcmp(way, "rest") || !strcmp(way, "find"), keys = !strcmp(way, "keys");
  Coder coder = {.out = fopen(arguments[3], "wb")};
  Picture reference = {0};
  AVPacket *packet = av_packet_alloc();
  char line[4096];
  int first = 0, compared = 0, scrolls = 0, vectors[MOST_VECTORS];
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "segment", 7)) {
      end(&coder);
      first = 1;
      continue;
    }
    line[strcspn(line, "\n")] = 0;
    AVFrame *frame = decode(strchr(line, ' ') + 1, packet);
    Picture now = keep(frame);
    av_frame_free(&frame);
    int found = 0, delta = 0;
    if (!first && (scroll || shares)) {
      found = find_vectors(&now, &reference, vectors);
      scrolls += found > 0;
      compared++;
      if (shares) cover(&now, &reference, vectors, found, &still, &moved);
      places += still;
      moves += moved;
      delta = strcmp(way, "find") && still + moved >= value;
    }
    if (coding && star && delta) {
      begin(&coder, &reference, arguments + 1);
      code(&coder, &reference, 0, 0);
      code(&coder, &now, 90000, 0);
      end(&coder);
    } else if (coding && !star && !delta && (first || !keys)) {
      if (first) begin(&coder, &now, arguments + 1);
      int range = found && scroll ? abs(vectors[0]) * value + 4 : 0;
      code(&coder, &now, atoll(line), range > 1024 ? 1024 : range && range < 16 ? 16 : range);
    }
    if (delta) discard(&now);
    else {
      discard(&reference);
      reference = now;
    }
    first = 0;
  }
  end(&coder);
  fclose(coder.out);
  printf("%ld %ld %ld %d %.3f %.3f\n", coder.bytes, coder.keys, coder.pictures, scrolls, compared ? places / compared : 0,
         compared ? moves / compared : 0);
}

// Runs the loops of CPixels over random pixels, and writes all results to standard output. scripts/arm64 compares the
// results of both architectures. Usage: pixels ROUNDS

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CPixels.h"

enum { WIDEST = 300, ROWS = 9 };

static uint64_t state = 88172645463325252u;
static uint32_t number(uint32_t bound) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (uint32_t)(state >> 33) % bound;
}

// Fills a buffer with values of all sizes, or with the extremes alone: sums then reach their bounds.
static void fill(uint8_t *bytes, size_t count) {
  int is_extreme = number(3) == 0;
  for (size_t index = 0; index < count; index += 1) bytes[index] = (uint8_t)(is_extreme ? 255 * number(2) : number(256));
}

static void put(const void *bytes, size_t count) {
  if (fwrite(bytes, 1, count, stdout) != count) exit(74);
}

static void unfilter(void) {
  static uint8_t bytes[ROWS * (4 * WIDEST + 1) + CPX_SLACK];
  size_t size = 3 + number(2), count = size * (1 + number(WIDEST)), rows = 1 + number(ROWS);
  fill(bytes, sizeof bytes);
  // Mostly Paeth, whose rows are taken in pairs; sometimes a filter that does not exist.
  for (size_t row = 0; row < rows; row += 1) bytes[row * (count + 1)] = (uint8_t)(number(2) ? 4 : number(5));
  if (number(50) == 0) bytes[number((uint32_t)rows) * (count + 1)] = 5;
  uint8_t is_good = cpx_unfilter(bytes, count, rows, size);
  put(&is_good, 1);
  for (size_t row = 0; is_good && row < rows; row += 1) put(bytes + row * (count + 1) + 1, count);
}

static void subsample(void) {
  static uint8_t rows[2][3 * WIDEST], luma[2][WIDEST], chroma[2][WIDEST];
  size_t width = 1 + number(WIDEST), lower = number(4) ? 1 : 0;
  fill(rows[0], sizeof rows[0]);
  fill(rows[1], sizeof rows[1]);
  cpx_subsample(rows[0], rows[lower], width, luma[0], luma[lower], chroma[0], chroma[1]);
  for (size_t row = 0; row <= lower; row += 1) put(luma[row], width);
  for (size_t plane = 0; plane < 2; plane += 1) put(chroma[plane], (width + 1) / 2);
}

// Two pictures with few differences, in every width.
static void changes(void) {
  enum { STRIDE = WIDEST + 4, HIGHEST = 40 };
  static uint8_t planes[2][3][STRIDE * HIGHEST], changed[(WIDEST / 16 + 1) * (HIGHEST / 16 + 1)];
  struct cpx_planes pictures[2];
  size_t width = 2 + 2 * number(WIDEST / 2 - 1), height = 2 + 2 * number(HIGHEST / 2 - 1);
  for (size_t picture = 0; picture < 2; picture += 1) {
    pictures[picture].width = width, pictures[picture].height = height;
    for (size_t plane = 0; plane < 3; plane += 1) {
      pictures[picture].samples[plane] = planes[picture][plane];
      pictures[picture].strides[plane] = STRIDE;
    }
  }
  fill(planes[0][0], sizeof planes[0]);
  memcpy(planes[1], planes[0], sizeof planes[0]);
  for (uint32_t count = number(8); count > 0; count -= 1) planes[1][number(3)][number(STRIDE * HIGHEST)] ^= (uint8_t)number(256);
  uint32_t count = (uint32_t)cpx_changed_blocks(&pictures[0], &pictures[1], changed);
  put(&count, sizeof count);
  put(changed, (width + 15) / 16 * ((height + 15) / 16));
}

static void flatten(void) {
  static uint8_t rgba[4 * WIDEST], rgb[3 * WIDEST];
  size_t width = 1 + number(WIDEST);
  uint8_t colour[3];
  fill(rgba, sizeof rgba);
  fill(colour, sizeof colour);
  if (number(2)) for (size_t pixel = 0; pixel < width; pixel += 1) rgba[4 * pixel + 3] = 255;
  cpx_flatten(rgba, width, colour, rgb);
  put(rgb, 3 * width);
}

static float lights[2][65536];
static uint8_t codes[65536];

// The tables come from integers and square roots, which are exact everywhere; a power might not be.
static void make_tables(void) {
  for (size_t value = 0; value < 65536; value += 1) {
    float narrow = (float)(value % 256) / 255, wide = (float)value / 65535;
    lights[0][value] = narrow * narrow;
    lights[1][value] = wide * wide;
    codes[value] = (uint8_t)(sqrtf(wide) * 255 + 0.5f);
  }
}

static void to_srgb(void) {
  static uint8_t from[8 * WIDEST], to[4 * WIDEST];
  static const float matrix[9] = {
      1.2249401f, -0.2249402f, 0, -0.0420570f, 1.0420571f, 0, -0.0196376f, -0.0786361f, 1.0982735f};
  static const float weights[3] = {0.2627f, 0.6780f, 0.0593f};
  size_t width = 1 + number(WIDEST), channels = 1 + number(4);
  bool is_wide = number(2);
  fill(from, sizeof from);
  cpx_to_srgb(from, width, channels, is_wide, lights[is_wide], matrix, number(2) ? weights : NULL, codes, to);
  put(to, width * (channels % 2 ? 3 : 4));
}

int main(int count, char **words) {
  long rounds = count > 1 ? strtol(words[1], NULL, 10) : 0;
  if (rounds < 1) return 64;
  make_tables();
  for (long round = 0; round < rounds; round += 1) {
    unfilter();
    subsample();
    flatten();
    changes();
    to_srgb();
  }
  return fflush(stdout) == 0 ? 0 : 74;
}

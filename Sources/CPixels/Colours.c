#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "CPixels.h"

static uint8_t coded(float light, const uint8_t *codes) {
  // Also for a NaN.
  float share = light > 0 ? (light < 1 ? light : 1) : 0;
  return codes[(size_t)(share * 65535 + 0.5f)];
}

void cpx_to_srgb(
    const uint8_t *from, size_t width, size_t channels, bool is_wide, const float *light, const float matrix[9],
    const float *weights, const uint8_t *codes, uint8_t *to) {
  bool has_alpha = channels % 2 == 0, is_grey = channels < 3;
  size_t bytes = is_wide ? 2 : 1;
  for (size_t column = 0; column < width; column += 1, from += channels * bytes, to += has_alpha ? 4 : 3) {
    uint32_t values[4];
    for (size_t channel = 0; channel < channels; channel += 1) {
      values[channel] = is_wide ? (uint32_t)from[2 * channel] << 8 | from[2 * channel + 1] : from[channel];
    }
    float red = light[values[0]];
    float green = is_grey ? red : light[values[1]];
    float blue = is_grey ? red : light[values[2]];
    if (weights) {
      float gain = powf(weights[0] * red + weights[1] * green + weights[2] * blue, 0.2f);
      red *= gain;
      green *= gain;
      blue *= gain;
    }
    for (size_t row = 0; row < 3; row += 1) {
      to[row] = coded(matrix[3 * row] * red + matrix[3 * row + 1] * green + matrix[3 * row + 2] * blue, codes);
    }
    if (has_alpha) {
      uint32_t alpha = values[channels - 1];
      to[3] = (uint8_t)(is_wide ? (alpha * 255 + 32767) / 65535 : alpha);
    }
  }
}

enum { COLOUR_BITS = 12 };

struct cpx_colours {
  // By a hash: a colour and 1 << 24, or 0 where there is none; and its result.
  uint32_t colours[1 << COLOUR_BITS], results[1 << COLOUR_BITS];
  // Groups of pixels to convert without the table.
  uint32_t direct;
};

struct cpx_colours *cpx_colours_create(void) { return calloc(1, sizeof(struct cpx_colours)); }

void cpx_colours_free(struct cpx_colours *known) { free(known); }

// Pixels that are converted at once; and the number of groups that are converted without a look into the table, behind one that has
// few known colours, as in photographs.
enum { GROUP = 512, DIRECT = 15 };
// The mark of a colour whose result is not known yet.
static const uint32_t PENDING = 1u << 31;

// The colour of a pixel, in 24 bits.
static inline uint32_t colour_of(const uint8_t *pixel) {
  return pixel[0] | (uint32_t)pixel[1] << 8 | (uint32_t)pixel[2] << 16;
}

// Returns the number of pixels from the first on that have its colour.
static inline size_t count_equal(const uint8_t *pixels, size_t count, size_t size, uint32_t colour) {
  size_t index = 1;
  for (; index + 1 < count; index += 1) {
    // A pixel follows, so that four bytes can be read.
    uint32_t bytes;
    memcpy(&bytes, pixels + index * size, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap32(bytes);
#endif
    if ((bytes ^ colour) & 0xFFFFFF) return index;
  }
  if (index < count && colour_of(pixels + index * size) == colour) index += 1;
  return index;
}

static void convert_all(
    uint8_t *pixels, size_t count, size_t size, void (*convert)(void *, const uint8_t *, uint8_t *, size_t), void *context) {
  uint8_t from[3 * GROUP], to[3 * GROUP];
  for (size_t index = 0; index < count; index += 1) memcpy(from + 3 * index, pixels + index * size, 3);
  convert(context, from, to, count);
  for (size_t index = 0; index < count; index += 1) memcpy(pixels + index * size, to + 3 * index, 3);
}

void cpx_recolour(
    struct cpx_colours *known, uint8_t *pixels, size_t count, size_t size,
    void (*convert)(void *context, const uint8_t *from, uint8_t *to, size_t count), void *context) {
  // Pixels of one colour: their number, the colour, and its result, or where it will be in `to`.
  struct { uint32_t count, colour, result; } runs[GROUP];
  uint32_t places[GROUP];
  uint8_t from[3 * GROUP], to[3 * GROUP];
  while (count) {
    size_t group = count < GROUP ? count : GROUP, run_count = 0, unknown = 0;
    count -= group;
    if (known->direct) {
      known->direct -= 1;
      convert_all(pixels, group, size, convert, context);
      pixels += group * size;
      continue;
    }
    for (size_t index = 0; index < group;) {
      const uint8_t *pixel = pixels + index * size;
      uint32_t colour = colour_of(pixel), key = colour | 1u << 24;
      uint32_t place = colour * 2654435761u >> (32 - COLOUR_BITS);
      if (known->colours[place] != key) {
        known->colours[place] = key;
        known->results[place] = PENDING | (uint32_t)unknown;
        memcpy(from + 3 * unknown, pixel, 3);
        places[unknown++] = place;
      }
      size_t equal = count_equal(pixel, group - index, size, colour);
      runs[run_count].count = (uint32_t)equal;
      runs[run_count].colour = colour;
      runs[run_count++].result = known->results[place];
      index += equal;
    }
    if (unknown) convert(context, from, to, unknown);
    for (size_t index = 0; index < unknown; index += 1) {
      // Another colour may have taken the place.
      uint32_t *result = &known->results[places[index]];
      if (*result == (PENDING | index)) *result = colour_of(to + 3 * index);
    }
    for (size_t run = 0; run < run_count; run += 1) {
      uint32_t result = runs[run].result;
      if (result & PENDING) result = colour_of(to + 3 * (result & ~PENDING));
      uint8_t *end = pixels + runs[run].count * size;
      // Greys do not change.
      for (; pixels < end && result != runs[run].colour; pixels += size) {
        pixels[0] = (uint8_t)result;
        pixels[1] = (uint8_t)(result >> 8);
        pixels[2] = (uint8_t)(result >> 16);
      }
      pixels = end;
    }
    if (unknown > group / 4 * 3) known->direct = DIRECT;
  }
}

struct space {
  const float *light, *matrix, *weights;
  const uint8_t *codes;
};

static void convert_space(void *context, const uint8_t *from, uint8_t *to, size_t count) {
  const struct space *space = context;
  cpx_to_srgb(from, count, 3, false, space->light, space->matrix, space->weights, space->codes, to);
}

void cpx_recolour_to_srgb(
    struct cpx_colours *known, uint8_t *pixels, size_t count, size_t size, const float *light, const float matrix[9],
    const float *weights, const uint8_t *codes) {
  struct space space = {light, matrix, weights, codes};
  cpx_recolour(known, pixels, count, size, convert_space, &space);
}

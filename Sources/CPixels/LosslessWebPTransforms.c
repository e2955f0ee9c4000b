// The transforms of lossless WebPs, which the decoder undoes.
#include "LosslessWebP.h"

INLINE uint32_t mean(uint32_t one, uint32_t other) { return (((one ^ other) & 0xFEFEFEFE) >> 1) + (one & other); }

INLINE int channel(uint32_t pixel, unsigned shift) { return (int)(pixel >> shift & 255); }

INLINE uint32_t clamped(int value) { return (uint32_t)(value < 0 ? 0 : value > 255 ? 255 : value); }

INLINE uint32_t nearest(uint32_t left, uint32_t above, uint32_t corner) {
  int to_left = 0, to_above = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    to_left += abs(channel(above, shift) - channel(corner, shift));
    to_above += abs(channel(left, shift) - channel(corner, shift));
  }
  return to_left < to_above ? left : above;
}

INLINE uint32_t gradient(uint32_t left, uint32_t above, uint32_t corner) {
  uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    result |= clamped(channel(left, shift) + channel(above, shift) - channel(corner, shift)) << shift;
  }
  return result;
}

INLINE uint32_t half_gradient(uint32_t middle, uint32_t corner) {
  uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    int one = channel(middle, shift);
    result |= clamped(one + (one - channel(corner, shift)) / 2) << shift;
  }
  return result;
}

// Adds the predictions of one mode. Behind the last pixel of the row above comes the first one of this row.
static bool predict(uint32_t *row, size_t start, size_t end, size_t width, unsigned mode) {
#define EACH(prediction)                                                        \
  for (size_t x = start; x < end; x += 1) {                                     \
    uint32_t left = row[x - 1];                                                 \
    const uint32_t *above = row + x - width;                                    \
    (void)left, (void)above;                                                    \
    row[x] = add(row[x], prediction);                                           \
  }                                                                             \
  return true
  switch (mode) {
  case 0: EACH(0xFF000000);
  case 1: EACH(left);
  case 2: EACH(above[0]);
  case 3: EACH(above[1]);
  case 4: EACH(above[-1]);
  case 5: EACH(mean(mean(left, above[1]), above[0]));
  case 6: EACH(mean(left, above[-1]));
  case 7: EACH(mean(left, above[0]));
  case 8: EACH(mean(above[-1], above[0]));
  case 9: EACH(mean(above[0], above[1]));
  case 10: EACH(mean(mean(left, above[-1]), mean(above[0], above[1])));
  case 11: EACH(nearest(left, above[0], above[-1]));
  case 12: EACH(gradient(left, above[0], above[-1]));
  case 13: EACH(half_gradient(mean(left, above[0]), above[-1]));
  default: return false;
  }
#undef EACH
}

static bool undo_prediction(const struct transform *transform, struct image *image) {
  size_t width = image->width, side = (size_t)1 << transform->bits;
  uint32_t *row = image->pixels;
  row[0] = add(row[0], 0xFF000000);
  for (size_t x = 1; x < width; x += 1) row[x] = add(row[x], row[x - 1]);
  for (size_t y = 1; y < image->height; y += 1) {
    row += width;
    row[0] = add(row[0], row[0 - (ptrdiff_t)width]);
    const uint32_t *modes = transform->data.pixels + (y >> transform->bits) * transform->data.width;
    for (size_t start = 0; start < width; start += side, modes += 1) {
      size_t end = start + side < width ? start + side : width;
      if (!predict(row, start ? start : 1, end, width, *modes >> 8 & 255)) return false;
    }
  }
  return true;
}

INLINE int product(uint32_t factor, uint32_t value) { return (int8_t)(factor & 255) * (int8_t)(value & 255) >> 5; }

static void undo_colours(const struct transform *transform, struct image *image) {
  for (size_t y = 0; y < image->height; y += 1) {
    uint32_t *row = image->pixels + y * image->width;
    const uint32_t *factors = transform->data.pixels + (y >> transform->bits) * transform->data.width;
    for (size_t x = 0; x < image->width; x += 1) {
      uint32_t factor = factors[x >> transform->bits], pixel = row[x], green = pixel >> 8;
      uint32_t red = (pixel >> 16) + (uint32_t)product(factor, green);
      uint32_t blue = pixel + (uint32_t)product(factor >> 8, green) + (uint32_t)product(factor >> 16, red);
      row[x] = (pixel & 0xFF00FF00) | (red & 255) << 16 | (blue & 255);
    }
  }
}

static void undo_green(struct image *image) {
  for (size_t index = 0; index < image->width * image->height; index += 1) {
    uint32_t pixel = image->pixels[index], green = pixel >> 8 & 255;
    image->pixels[index] = (pixel & 0xFF00FF00) | (((pixel & 0x00FF00FF) + (green << 16 | green)) & 0x00FF00FF);
  }
}

// Replaces indices, of which some bits wide ones lie in a pixel, by colours.
static bool undo_palette(const struct transform *transform, struct image *image) {
  struct image result;
  if (!allocate(&result, transform->width, image->height)) return false;
  unsigned bits = 8 >> transform->bits;
  size_t mask = ((size_t)1 << transform->bits) - 1, colours = transform->data.width;
  uint32_t excess = 0, limit = (1u << bits) - 1;
  for (size_t y = 0; y < image->height; y += 1) {
    const uint32_t *from = image->pixels + y * image->width;
    uint32_t *to = result.pixels + y * result.width;
    for (size_t x = 0; x < result.width; x += 1) {
      size_t index = from[x >> transform->bits] >> (8 + bits * (x & mask)) & limit;
      excess |= index >= colours;
      to[x] = transform->data.pixels[index < colours ? index : 0];
    }
  }
  free(image->pixels);
  *image = result;
  return !excess;
}

bool cpx_webp_undo(const struct transform *transform, struct image *image) {
  switch (transform->kind) {
  case PREDICTION: return undo_prediction(transform, image);
  case 1: undo_colours(transform, image); return true;
  case 2: undo_green(image); return true;
  default: return undo_palette(transform, image);
  }
}

#include <string.h>

#include "CPixels.h"

// Four RGB pixels: red in the low byte.
typedef uint32_t quad __attribute__((vector_size(16)));
typedef int32_t ints __attribute__((vector_size(16)));
typedef uint8_t bytes4 __attribute__((vector_size(4)));

static inline uint32_t pixel(const uint8_t *bytes) {
  uint32_t pixel;
  memcpy(&pixel, bytes, 4);
  return pixel;
}

// Reads 13 bytes.
static inline quad load(const uint8_t *rgb) {
  return (quad){pixel(rgb), pixel(rgb + 3), pixel(rgb + 6), pixel(rgb + 9)};
}

static inline void store(ints samples, uint8_t *bytes) {
  bytes4 low = __builtin_convertvector(samples, bytes4);
  memcpy(bytes, &low, 4);
}

static inline ints luma(quad rgb) {
  ints red = (ints)(rgb & 0xFF), green = (ints)(rgb >> 8 & 0xFF), blue = (ints)(rgb >> 16 & 0xFF);
  return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
}

// Adds neighbours: those of eight pixels give four sums.
static inline quad pairs(quad first, quad second) {
  return __builtin_shufflevector(first, second, 0, 2, 4, 6) + __builtin_shufflevector(first, second, 1, 3, 5, 7);
}

void cpx_subsample(
    const uint8_t *upper, const uint8_t *lower, size_t width, uint8_t *upper_luma, uint8_t *lower_luma, uint8_t *blue,
    uint8_t *red) {
  size_t column = 0;
  // One pixel more than eight, because `load` reads a byte of the next one.
  for (; column + 8 < width; column += 8) {
    quad a = load(upper + 3 * column), b = load(upper + 3 * column + 12);
    quad c = load(lower + 3 * column), d = load(lower + 3 * column + 12);
    store(luma(a), upper_luma + column);
    store(luma(b), upper_luma + column + 4);
    store(luma(c), lower_luma + column);
    store(luma(d), lower_luma + column + 4);
    quad outer = pairs((a & 0xFF00FF) + (c & 0xFF00FF), (b & 0xFF00FF) + (d & 0xFF00FF));
    ints g = (ints)pairs((a >> 8 & 0xFF) + (c >> 8 & 0xFF), (b >> 8 & 0xFF) + (d >> 8 & 0xFF));
    ints r = (ints)(outer & 0xFFFF), s = (ints)(outer >> 16);
    // The sums of four pixels have 262 144ths; the constant is 128.5. Pure blue or red reaches 255.5, hence the bound.
    ints u = (-11059 * r - 21709 * g + 32768 * s + 33685504) >> 18;
    ints v = (32768 * r - 27439 * g - 5329 * s + 33685504) >> 18;
    const ints most = {255, 255, 255, 255};
    store(__builtin_elementwise_min(u, most), blue + column / 2);
    store(__builtin_elementwise_min(v, most), red + column / 2);
  }
  for (; column < width; column += 2) {
    size_t next = column + 1 < width ? column + 1 : column;
    int sums[3] = {0};
    for (int index = 0; index < 4; index += 1) {
      const uint8_t *rgb = (index < 2 ? upper : lower) + 3 * (index % 2 ? next : column);
      uint8_t *y = (index < 2 ? upper_luma : lower_luma) + (index % 2 ? next : column);
      *y = (uint8_t)((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
      for (int channel = 0; channel < 3; channel += 1) sums[channel] += rgb[channel];
    }
    int u = (-11059 * sums[0] - 21709 * sums[1] + 32768 * sums[2] + 33685504) >> 18;
    int v = (32768 * sums[0] - 27439 * sums[1] - 5329 * sums[2] + 33685504) >> 18;
    blue[column / 2] = (uint8_t)(u < 255 ? u : 255);
    red[column / 2] = (uint8_t)(v < 255 ? v : 255);
  }
}

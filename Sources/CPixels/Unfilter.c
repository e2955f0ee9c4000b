#include <string.h>

#include "CPixels.h"

// Four samples of each of two pixels, in integers that hold sums. A pixel has three or four samples, and the second one
// may be unused. The compiler knows the instructions of each processor for these types.
typedef int16_t pixels __attribute__((vector_size(16)));
typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));

// A prediction of a pixel from the one to the left, the one above and the corner between them.
typedef pixels prediction(pixels left, pixels above, pixels corner);

#define INLINE static inline __attribute__((always_inline))

INLINE pixels load(const uint8_t *first, const uint8_t *second) {
  bytes4 samples[2];
  memcpy(&samples[0], first, 4);
  memcpy(&samples[1], second, 4);
  return __builtin_convertvector(__builtin_shufflevector(samples[0], samples[1], 0, 1, 2, 3, 4, 5, 6, 7), pixels);
}

// Reads four bytes.
INLINE pixels load_one(const uint8_t *bytes) {
  bytes4 samples, nothing = {0};
  memcpy(&samples, bytes, 4);
  return __builtin_convertvector(__builtin_shufflevector(samples, nothing, 0, 1, 2, 3, 4, 5, 6, 7), pixels);
}

// Writes `count` samples of one of the two pixels.
INLINE void store(pixels samples, int index, uint8_t *bytes, size_t count) {
  bytes8 low = __builtin_convertvector(samples, bytes8);
  memcpy(bytes, (uint8_t *)&low + 4 * index, count);
}

INLINE pixels left_one(pixels left, pixels above, pixels corner) {
  (void)above, (void)corner;
  return left;
}

INLINE pixels average(pixels left, pixels above, pixels corner) {
  (void)corner;
  return (left + above) >> 1;
}

// Returns the neighbour that is nearest to left + above - corner. Three comparisons of distances are two here (a test
// compares them): if 3 corner - above - left is at most the smaller of left and above, then the larger is the
// nearest; if it is at least the larger, the smaller is; otherwise the corner is. Few steps depend on the left pixel,
// which is known last.
INLINE pixels paeth(pixels left, pixels above, pixels corner) {
  pixels low = __builtin_elementwise_min(left, above), high = __builtin_elementwise_max(left, above);
  pixels middle = corner * 3 - above;
  pixels is_below = high + left > middle, is_above = middle > low + left;
  pixels lower = (corner & is_below) | (low & ~is_below);
  return (lower & is_above) | (high & ~is_above);
}

// Adds the prediction to each pixel of a row. It writes four bytes of a pixel in any case, except of the last one: that is
// faster than three. Hence it reads the next pixel first.
INLINE void unfilter(uint8_t *row, const uint8_t *above, size_t count, size_t size, prediction *predict) {
  pixels left = {0}, corner = {0}, raw = load_one(row);
  size_t offset = 0;
  for (; offset + size < count; offset += size) {
    pixels next = load_one(row + offset + size), top = load_one(above + offset);
    left = (raw + predict(left, top, corner)) & 0xFF;
    corner = top;
    store(left, 0, row + offset, 4);
    raw = next;
  }
  store(raw + predict(left, load_one(above + offset), corner), 0, row + offset, size);
}

// Two rows in one vector, the lower one a pixel behind.
typedef struct {
  pixels left, corner;
} two_rows;

INLINE pixels step(two_rows *rows, pixels raw, const uint8_t *above) {
  pixels top = __builtin_shufflevector(load_one(above), rows->left, 0, 1, 2, 3, 8, 9, 10, 11);
  rows->left = (raw + paeth(rows->left, top, rows->corner)) & 0xFF;
  rows->corner = top;
  return rows->left;
}

// Adds Paeth's prediction to each pixel of two rows, which takes as long as one: each pixel waits for the one to the left.
// The last pixel of the upper row may overwrite the filter byte of the lower one.
INLINE void unfilter_two(uint8_t *upper, const uint8_t *above, size_t count, size_t size) {
  uint8_t *lower = upper + count + 1;
  // The first pixel of the upper row is predicted from above, and the lower row has not begun.
  pixels corner = load_one(above), raw = load(upper + size, lower);
  two_rows rows = {(load_one(upper) + corner) & 0xFF, corner};
  store(rows.left, 0, upper, size);
  for (size_t offset = size; offset < count; offset += size) {
    pixels next = load(upper + offset + size, lower + offset);
    pixels both = step(&rows, raw, above + offset);
    store(both, 0, upper + offset, 4);
    store(both, 1, lower + offset - size, 4);
    raw = next;
  }
  // The upper row is complete: its half of the vector is not stored.
  store(step(&rows, raw, above), 1, lower + count - size, size);
}

INLINE void up(uint8_t *restrict row, const uint8_t *restrict above, size_t count) {
  for (size_t index = 0; index < count; index += 1) row[index] += above[index];
}

INLINE bool unfilter_rows(uint8_t *bytes, size_t count, size_t rows, size_t size) {
  uint8_t *above = NULL;
  for (size_t index = 0; index < rows; index += 1) {
    uint8_t *row = bytes + index * (count + 1) + 1;
    uint8_t filter = row[-1];
    // Above the first row all samples are 0: Paeth then predicts the left pixel.
    if (!above && filter == 2) filter = 0;
    if (!above && filter == 4) filter = 1;
    switch (filter) {
      case 0: break;
      case 1: unfilter(row, row, count, size, left_one); break;
      case 2: up(row, above, count); break;
      case 3:
        if (above) {
          unfilter(row, above, count, size, average);
        } else {
          for (size_t offset = size; offset < count; offset += 1) row[offset] += row[offset - size] / 2;
        }
        break;
      case 4:
        if (index + 1 < rows && row[count] == 4) {
          unfilter_two(row, above, count, size);
          index += 1;
          row += count + 1;
        } else {
          unfilter(row, above, count, size, paeth);
        }
        break;
      default: return false;
    }
    above = row;
  }
  return true;
}

bool cpx_unfilter(uint8_t *bytes, size_t count, size_t rows, size_t size) {
  return size == 3 ? unfilter_rows(bytes, count, rows, 3) : unfilter_rows(bytes, count, rows, 4);
}

#include "CPixels.h"

#include <string.h>

// Pixels of a block's side, and of a group of blocks that is compared at once.
enum { SIDE = 16, GROUP = 64 };

typedef uint8_t vector __attribute__((vector_size(32), aligned(1)));

// The bits in which the rows of a group differ, by column: of luma, and of both chroma planes.
struct sums {
  uint8_t luma[GROUP], chroma[GROUP / 2];
};

static inline __attribute__((always_inline)) void add_differences(
    const uint8_t *one, size_t stride, const uint8_t *other, size_t other_stride, size_t rows, uint8_t *sums) {
  vector sum = *(const vector *)sums;
#pragma clang loop unroll_count(4)
  for (size_t row = 0; row < rows; row += 1) {
    sum |= *(const vector *)one ^ *(const vector *)other;
    one += stride;
    other += other_stride;
  }
  *(vector *)sums = sum;
}

static inline __attribute__((always_inline)) void sum_group(
    const struct cpx_planes *first, const struct cpx_planes *second, size_t column, size_t row, size_t rows,
    struct sums *sums) {
  memset(sums, 0, sizeof *sums);
  for (size_t half = 0; half < GROUP; half += GROUP / 2) {
    size_t x = column + half;
    add_differences(
        first->samples[0] + row * first->strides[0] + x, first->strides[0],
        second->samples[0] + row * second->strides[0] + x, second->strides[0], rows, sums->luma + half);
  }
  for (int plane = 1; plane < 3; plane += 1) {
    size_t stride = first->strides[plane], other = second->strides[plane];
    add_differences(
        first->samples[plane] + row / 2 * stride + column / 2, stride,
        second->samples[plane] + row / 2 * other + column / 2, other, rows / 2, sums->chroma);
  }
}

static void sum_any(
    const struct cpx_planes *first, const struct cpx_planes *second, size_t column, size_t row, size_t rows,
    struct sums *sums) {
  sum_group(first, second, column, row, rows, sums);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void sum_avx2(
    const struct cpx_planes *first, const struct cpx_planes *second, size_t column, size_t row, size_t rows,
    struct sums *sums) {
  sum_group(first, second, column, row, rows, sums);
}
#endif

// Pictures that are narrower than a group.
static void sum_narrow(
    const struct cpx_planes *first, const struct cpx_planes *second, size_t row, size_t rows, struct sums *sums) {
  memset(sums, 0, sizeof *sums);
  for (int plane = 0; plane < 3; plane += 1) {
    int shift = plane == 0 ? 0 : 1;
    uint8_t *sum = plane == 0 ? sums->luma : sums->chroma;
    for (size_t line = row >> shift; line < (row + rows) >> shift; line += 1) {
      const uint8_t *one = first->samples[plane] + line * first->strides[plane];
      const uint8_t *other = second->samples[plane] + line * second->strides[plane];
      for (size_t column = 0; column < first->width >> shift; column += 1) sum[column] |= one[column] ^ other[column];
    }
  }
}

static bool is_changed(const struct sums *sums, size_t from, size_t to) {
  if (to - from == SIDE) {
    uint64_t parts[3];
    memcpy(parts, sums->luma + from, 16);
    memcpy(parts + 2, sums->chroma + from / 2, 8);
    return (parts[0] | parts[1] | parts[2]) != 0;
  }
  uint8_t bits = 0;
  for (size_t column = from; column < to; column += 1) bits |= sums->luma[column] | sums->chroma[column / 2];
  return bits != 0;
}

size_t cpx_changed_blocks(const struct cpx_planes *first, const struct cpx_planes *second, uint8_t *changed) {
  void (*sum)(const struct cpx_planes *, const struct cpx_planes *, size_t, size_t, size_t, struct sums *) = sum_any;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) sum = sum_avx2;
#endif
  size_t width = first->width, height = first->height, count = 0;
  for (size_t row = 0; row < height; row += SIDE) {
    size_t rows = height - row < SIDE ? height - row : SIDE;
    for (size_t column = 0; column < width; column += GROUP) {
      struct sums sums;
      // The last group ends at the edge, and begins within the group before it.
      size_t start = width < GROUP ? 0 : width - column < GROUP ? width - GROUP : column;
      if (width < GROUP) {
        sum_narrow(first, second, row, rows, &sums);
      } else {
        sum(first, second, start, row, rows, &sums);
      }
      size_t end = column + GROUP < width ? column + GROUP : width;
      for (size_t block = column; block < end; block += SIDE) {
        size_t to = block + SIDE < end ? block + SIDE : end;
        *changed = is_changed(&sums, block - start, to - start);
        count += *changed;
        changed += 1;
      }
    }
  }
  return count;
}

void cpx_block_differences(
    const uint8_t *first, size_t first_stride, const uint8_t *second, size_t second_stride, size_t width, size_t height,
    size_t side, uint32_t *sums) {
  size_t columns = (width + side - 1) / side;
  for (size_t row = 0; row < height; row += 1) {
    const uint8_t *one = first + row * first_stride, *other = second + row * second_stride;
    for (size_t block = 0; block < columns; block += 1) {
      size_t from = block * side, to = from + side < width ? from + side : width;
      uint32_t sum = 0;
      for (size_t column = from; column < to; column += 1) {
        int difference = one[column] - other[column];
        sum += (uint32_t)(difference < 0 ? -difference : difference);
      }
      sums[row / side * columns + block] += sum;
    }
  }
}

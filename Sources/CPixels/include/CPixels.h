// Loops over pixels that the compiler turns into vector instructions (SSE2, NEON). They check no sizes: the caller
// guarantees them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes behind the last row that `cpx_unfilter` may read.
#define CPX_SLACK 8

// Reverses the filters of a PNG in place (ISO/IEC 15948, 9): `rows` rows, each a filter byte and `count` bytes of pixels.
// A pixel has `size` bytes, 3 or 4; `count` is at least that. Filter bytes are lost. Returns false at an unknown filter.
bool cpx_unfilter(uint8_t *bytes, size_t count, size_t rows, size_t size);

// Converts two rows of RGB24 to 4:2:0, with JFIF's matrix (ITU-T T.871, 7) in 65 536ths. A chroma sample is the mean of
// two by two pixels; the last pixel of an odd width counts twice. Both rows may be the same one.
void cpx_subsample(
    const uint8_t *upper, const uint8_t *lower, size_t width, uint8_t *upper_luma, uint8_t *lower_luma, uint8_t *blue,
    uint8_t *red);

// Blends a row of RGBA over a colour, to RGB24, each sample to the nearest.
void cpx_flatten(const uint8_t *rgba, size_t width, const uint8_t colour[3], uint8_t *rgb);

// Converts a row of 1 to 4 channels (grey or RGB, an even number with alpha last), of 8 bits or of 16 with the high byte first, to
// sRGB: RGB24, or RGBA if it has alpha. `light` has the light of each value, 256 or 65 536 of them; `matrix`, row by row, leads
// to linear sRGB, and light outside 0 to 1 is clipped. `weights`, unless it is null, makes luminance of light, whose power
// of 0.2 multiplies the light first. `codes` has the value of light in 65 535ths.
void cpx_to_srgb(
    const uint8_t *from, size_t width, size_t channels, bool is_wide, const float *light, const float matrix[9],
    const float *weights, const uint8_t *codes, uint8_t *to);

// Colours whose conversion is known. Not thread-safe.
struct cpx_colours;

// Returns null without memory.
struct cpx_colours *cpx_colours_create(void);
void cpx_colours_free(struct cpx_colours *known);

// Converts the first three bytes of `count` pixels in place. A pixel has `size` bytes, 3 or 4. `convert` gets colours that are
// not known, three bytes each. It is the same for all calls with a table, and its result for a colour depends on nothing else.
void cpx_recolour(
    struct cpx_colours *known, uint8_t *pixels, size_t count, size_t size,
    void (*convert)(void *context, const uint8_t *from, uint8_t *to, size_t count), void *context);

// Converts pixels of 8 bits in place as `cpx_to_srgb` does. A table has colours of one space only.
void cpx_recolour_to_srgb(
    struct cpx_colours *known, uint8_t *pixels, size_t count, size_t size, const float *light, const float matrix[9],
    const float *weights, const uint8_t *codes);

// The planes of a picture in 4:2:0: Y, Cb, Cr. The sides are those of Y, in pixels, and even.
struct cpx_planes {
  const uint8_t *samples[3];
  // Bytes from row to row.
  size_t strides[3];
  size_t width, height;
};

// Counts the blocks of 16 by 16 pixels, with their 8 by 8 samples of each chroma plane, in which two pictures of one size differ.
// Blocks at the right and lower edge may be smaller. `changed` has a byte for each block, row by row, that becomes 1 or 0.
size_t cpx_changed_blocks(const struct cpx_planes *first, const struct cpx_planes *second, uint8_t *changed);

// Adds to the sum of each block, row by row, how far the samples of two planes are apart. A block has `side` by `side` samples.
void cpx_block_differences(
    const uint8_t *first, size_t first_stride, const uint8_t *second, size_t second_stride, size_t width, size_t height,
    size_t side, uint32_t *sums);

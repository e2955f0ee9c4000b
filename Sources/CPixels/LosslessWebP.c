// Decodes the coded picture of a lossless WebP (RFC 9649, 3). It is stricter than libavcodec: at anything that the format does not
// allow it gives up, and libavcodec decides about the file.
#include "CPixels.h"
#include "LosslessWebP.h"

// Returns a length or a distance by its prefix.
INLINE size_t read_number(struct reader *reader, unsigned prefix) {
  if (prefix < 4) return prefix + 1;
  unsigned bits = (prefix - 2) >> 1;
  return ((size_t)(2 + (prefix & 1)) << bits) + take(reader, bits) + 1;
}

// Returns the distance in pixels that a number stands for: the first 120 are neighbours, and closer in two dimensions.
static size_t distance_of(size_t number, size_t width) {
  static const uint8_t places[120] = {
      0x18, 0x07, 0x17, 0x19, 0x28, 0x06, 0x27, 0x29, 0x16, 0x1a, 0x26, 0x2a, 0x38, 0x05, 0x37, 0x39, 0x15, 0x1b, 0x36, 0x3a,
      0x25, 0x2b, 0x48, 0x04, 0x47, 0x49, 0x14, 0x1c, 0x35, 0x3b, 0x46, 0x4a, 0x24, 0x2c, 0x58, 0x45, 0x4b, 0x34, 0x3c, 0x03,
      0x57, 0x59, 0x13, 0x1d, 0x56, 0x5a, 0x23, 0x2d, 0x44, 0x4c, 0x55, 0x5b, 0x33, 0x3d, 0x68, 0x02, 0x67, 0x69, 0x12, 0x1e,
      0x66, 0x6a, 0x22, 0x2e, 0x54, 0x5c, 0x43, 0x4d, 0x65, 0x6b, 0x32, 0x3e, 0x78, 0x01, 0x77, 0x79, 0x53, 0x5d, 0x11, 0x1f,
      0x64, 0x6c, 0x42, 0x4e, 0x76, 0x7a, 0x21, 0x2f, 0x75, 0x7b, 0x31, 0x3f, 0x63, 0x6d, 0x52, 0x5e, 0x00, 0x74, 0x7c, 0x41,
      0x4f, 0x10, 0x20, 0x62, 0x6e, 0x30, 0x73, 0x7d, 0x51, 0x5f, 0x40, 0x72, 0x7e, 0x61, 0x6f, 0x50, 0x71, 0x7f, 0x60, 0x70,
  };
  if (number > 120) return number - 120;
  int row = places[number - 1] >> 4, column = 8 - (places[number - 1] & 15);
  int64_t distance = (int64_t)row * (int64_t)width + column;
  return distance < 1 ? 1 : (size_t)distance;
}

static size_t rounded(size_t length, unsigned bits) { return (length + ((size_t)1 << bits) - 1) >> bits; }

INLINE uint32_t place_in_cache(uint32_t pixel, unsigned bits) { return pixel * 0x1E35A7BDu >> (32 - bits); }

struct codes {
  struct tables tables;
  struct group *groups;
  // The group of each square; without pixels, there is one group.
  struct image squares;
  unsigned square_bits, cache_bits;
  uint32_t cache[1 << CACHE_BITS];
};

// Returns the group of a pixel's square.
INLINE const struct group *group_at(const struct codes *codes, size_t column, size_t row) {
  size_t square = (row >> codes->square_bits) * codes->squares.width + (column >> codes->square_bits);
  return &codes->groups[codes->squares.pixels[square] >> 8 & 0xFFFF];
}

// Reads pixels until the image is full.
static bool read_pixels(struct reader *reader, struct codes *codes, struct image *image) {
  uint32_t *pixels = image->pixels;
  size_t width = image->width, count = width * image->height, place = 0, cached = 0, column = 0, row = 0;
  unsigned cache_bits = codes->cache_bits;
  size_t mask = codes->squares.pixels ? ((size_t)1 << codes->square_bits) - 1 : SIZE_MAX;
  const struct entry *entries = codes->tables.entries;
  const struct group *group = codes->groups;
  while (place < count) {
    if ((column & mask) == 0 && codes->squares.pixels) {
      group = group_at(codes, column, row);
    }
    fill(reader);
    unsigned green = read_symbol(reader, entries + group->starts[0]);
    size_t length = 1;
    if (green < LITERALS) {
      uint32_t pixel = group->literal;
      if (!group->has_literal) {
        // Green, red and blue have at most 45 of the 56 bits.
        uint32_t red = read_symbol(reader, entries + group->starts[1]);
        uint32_t blue = read_symbol(reader, entries + group->starts[2]);
        fill(reader);
        pixel = read_symbol(reader, entries + group->starts[3]) << 24 | red << 16 | blue;
      }
      pixels[place] = pixel | green << 8;
    } else if (green < LITERALS + LENGTHS) {
      length = read_number(reader, green - LITERALS);
      fill(reader);
      size_t distance = distance_of(read_number(reader, read_symbol(reader, entries + group->starts[4])), width);
      if (distance > place || length > count - place) return false;
      uint32_t *to = pixels + place;
      for (size_t index = 0; index < length; index += 1) to[index] = to[(ptrdiff_t)index - (ptrdiff_t)distance];
    } else {
      // Earlier pixels come into the cache late.
      for (; cached < place; cached += 1) codes->cache[place_in_cache(pixels[cached], cache_bits)] = pixels[cached];
      uint32_t index = green - LITERALS - LENGTHS, pixel = codes->cache[index];
      // A place that nothing was put into: decoders differ about what follows.
      if (place_in_cache(pixel, cache_bits) != index) return false;
      pixels[place] = pixel;
    }
    if (is_overrun(reader)) return false;
    place += length;
    column += length;
    if (column < width) {
      // A new square may begin within a copy.
      if (length > 1 && codes->squares.pixels && (column & mask) != 0) {
        group = group_at(codes, column, row);
      }
      continue;
    }
    row += column / width;
    column %= width;
    if (codes->squares.pixels && row < image->height && (column & mask) != 0) {
      group = group_at(codes, column, row);
    }
  }
  return true;
}

// Reads an image with its codes. Only the picture itself has groups of codes.
static bool read_image(struct reader *reader, bool has_groups, size_t width, size_t height, struct image *image) {
  struct codes *codes = calloc(1, sizeof *codes);
  if (!codes) return false;
  bool is_read = false;
  size_t groups = 1;
  if (take(reader, 1)) {
    codes->cache_bits = take(reader, 4);
    if (codes->cache_bits < 1 || codes->cache_bits > CACHE_BITS) goto end;
  }
  if (has_groups && take(reader, 1)) {
    codes->square_bits = take(reader, 3) + 2;
    size_t columns = rounded(width, codes->square_bits), rows = rounded(height, codes->square_bits);
    if (!read_image(reader, false, columns, rows, &codes->squares)) goto end;
    for (size_t index = 0; index < columns * rows; index += 1) {
      size_t group = codes->squares.pixels[index] >> 8 & 0xFFFF;
      if (group >= groups) groups = group + 1;
    }
  }
  codes->groups = malloc(groups * sizeof *codes->groups);
  if (!codes->groups) goto end;
  size_t cached = codes->cache_bits ? (size_t)1 << codes->cache_bits : 0;
  for (size_t index = 0; index < groups; index += 1) {
    if (!cpx_webp_read_group(reader, &codes->tables, cached, &codes->groups[index])) goto end;
  }
  is_read = allocate(image, width, height) && read_pixels(reader, codes, image);
end:
  free(codes->squares.pixels);
  free(codes->groups);
  free(codes->tables.entries);
  free(codes);
  return is_read;
}

// Reads the transform at the head of the picture.
static bool read_transform(struct reader *reader, struct transform *transform, size_t *width, size_t height) {
  transform->width = *width;
  switch (transform->kind) {
  case 2: return true;
  case 3: {
    size_t colours = take(reader, 8) + 1;
    if (!read_image(reader, false, colours, 1, &transform->data)) return false;
    uint32_t *palette = transform->data.pixels;
    for (size_t index = 1; index < colours; index += 1) palette[index] = add(palette[index], palette[index - 1]);
    transform->bits = colours <= 2 ? 3 : colours <= 4 ? 2 : colours <= 16 ? 1 : 0;
    *width = rounded(*width, transform->bits);
    return true;
  }
  default:
    transform->bits = take(reader, 3) + 2;
    return read_image(reader, false, rounded(*width, transform->bits), rounded(height, transform->bits), &transform->data);
  }
}

// Returns red, green, blue and alpha in the order of memory.
INLINE uint32_t in_order(uint32_t pixel) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return pixel << 8 | pixel >> 24;
#else
  uint32_t swapped = __builtin_bswap32(pixel);
  return swapped >> 8 | swapped << 24;
#endif
}

// Returns false where a picture without alpha has some: libavcodec would use it.
static bool write_bytes(const struct image *image, uint8_t *to, size_t stride, bool has_alpha) {
  uint32_t all = UINT32_MAX;
  for (size_t y = 0; y < image->height; y += 1, to += stride) {
    const uint32_t *row = image->pixels + y * image->width;
    size_t last = image->width - 1;
    for (size_t x = 0; x < last + has_alpha; x += 1) {
      uint32_t bytes = in_order(row[x]);
      all &= row[x];
      // The fourth byte is overwritten by the next pixel.
      memcpy(to + x * (has_alpha ? 4 : 3), &bytes, 4);
    }
    if (has_alpha) continue;
    uint32_t bytes = in_order(row[last]);
    all &= row[last];
    memcpy(to + 3 * last, &bytes, 3);
  }
  return has_alpha || all >> 24 == 255;
}

bool cpx_decode_webp(const uint8_t *data, size_t size, size_t width, size_t height, bool has_alpha, uint8_t *to, size_t stride) {
  struct reader reader = {data, data + size, 0, 0, 0};
  struct transform transforms[4] = {0};
  struct image image = {0};
  size_t count = 0, coded_width = width;
  bool is_read = take(&reader, 8) == 0x2F && take(&reader, 14) + 1 == width && take(&reader, 14) + 1 == height
      && take(&reader, 1) == has_alpha && take(&reader, 3) == 0;
  unsigned seen = 0;
  while (is_read && take(&reader, 1)) {
    unsigned kind = take(&reader, 2);
    // Behind a palette that packs indices, libavcodec 5.1 predicts their last column from memory behind the row.
    bool is_packed_prediction = kind == PREDICTION && coded_width != width;
    if (seen & 1u << kind || is_packed_prediction) {
      is_read = false;
      break;
    }
    seen |= 1u << kind;
    transforms[count].kind = kind;
    is_read = read_transform(&reader, &transforms[count++], &coded_width, height);
  }
  is_read = is_read && read_image(&reader, true, coded_width, height, &image);
  for (size_t index = count; is_read && index > 0; index -= 1) is_read = cpx_webp_undo(&transforms[index - 1], &image);
  is_read = is_read && write_bytes(&image, to, stride, has_alpha);
  free(image.pixels);
  for (size_t index = 0; index < count; index += 1) free(transforms[index].data.pixels);
  return is_read;
}

// The parts of the decoder of lossless WebPs (RFC 9649, 3): its reader of bits, and the functions that its files share.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  // Bits of a code that are looked up at once, and its maximum length.
  ROOT = 8,
  LONGEST = 15,
  // The kinds of codes: green with lengths and cached colours, red, blue, alpha, distances.
  KINDS = 5,
  LITERALS = 256,
  LENGTHS = 24,
  DISTANCES = 40,
  CACHE_BITS = 11,
  MAX_SYMBOLS = LITERALS + LENGTHS + (1 << CACHE_BITS),
  // A kind of transform.
  PREDICTION = 0,
  // Maximum entries of all tables of codes.
  MAX_ENTRIES = 4 << 20,
};

#define INLINE static inline __attribute__((always_inline))

struct reader {
  const uint8_t *next, *end;
  uint64_t bits;
  // Valid bits, and zeros that were read behind the end.
  unsigned count;
  size_t missing;
};

// Makes at least 56 bits valid.
INLINE void fill(struct reader *reader) {
  if (reader->end - reader->next >= 8) {
    uint64_t word;
    memcpy(&word, reader->next, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    reader->bits |= word << reader->count;
    reader->next += (63 - reader->count) >> 3;
    reader->count |= 56;
    return;
  }
  for (; reader->count < 56; reader->count += 8) {
    if (reader->next < reader->end) {
      reader->bits |= (uint64_t)*reader->next++ << reader->count;
    } else {
      reader->missing += 8;
    }
  }
}

INLINE void skip(struct reader *reader, unsigned count) {
  reader->bits >>= count;
  reader->count -= count;
}

// Reads at most 32 bits.
static inline uint32_t take(struct reader *reader, unsigned count) {
  fill(reader);
  uint32_t value = (uint32_t)(reader->bits & ((1ull << count) - 1));
  skip(reader, count);
  return value;
}

// Whether bits behind the end were used.
INLINE bool is_overrun(const struct reader *reader) { return reader->missing > reader->count; }

// A symbol, and the bits of its code; or the place of a table for the bits behind the first ones, and their number plus 16.
struct entry {
  uint16_t value;
  uint8_t bits;
};

struct tables {
  struct entry *entries;
  size_t count, capacity;
};

// The tables of a group, by kind.
struct group {
  uint32_t starts[KINDS];
  // Whether red, blue and alpha have one symbol each; and these.
  bool has_literal;
  uint32_t literal;
};

struct image {
  uint32_t *pixels;
  size_t width, height;
};

struct transform {
  unsigned kind, bits;
  struct image data;
  // The width of the picture that it leads to.
  size_t width;
};

// Reads a symbol; 15 valid bits are needed.
INLINE unsigned read_symbol(struct reader *reader, const struct entry *table) {
  struct entry found = table[reader->bits & 0xFF];
  if (found.bits >= 16) {
    skip(reader, ROOT);
    found = table[found.value + (reader->bits & ((1u << (found.bits - 16)) - 1))];
  }
  skip(reader, found.bits);
  return found.value;
}

// Reads the codes of a group of pixels, where `cached` colours are kept. Returns false unless they are complete.
bool cpx_webp_read_group(struct reader *reader, struct tables *tables, size_t cached, struct group *group);

// Undoes a transform. Returns false at anything that the format does not allow.
bool cpx_webp_undo(const struct transform *transform, struct image *image);

INLINE bool allocate(struct image *image, size_t width, size_t height) {
  *image = (struct image){malloc(width * height * sizeof(uint32_t)), width, height};
  return image->pixels;
}

// Adds channel by channel.
INLINE uint32_t add(uint32_t one, uint32_t other) {
  uint32_t even = (one & 0x00FF00FF) + (other & 0x00FF00FF), odd = (one & 0xFF00FF00) + (other & 0xFF00FF00);
  return (even & 0x00FF00FF) | (odd & 0xFF00FF00);
}

// Checks that zlib would read a deflate stream (RFC 1951) that libdeflate has read. libdeflate is less strict: it reads incomplete
// Huffman codes and unused symbols. The check follows all codes, and makes no output. Where it is in doubt it says no.

#include <string.h>

#include "CPixels.h"

enum { MAXIMUM_BITS = 15, SHORT_BITS = 11, LITERALS = 288, DISTANCES = 32, END_OF_BLOCK = 256, LONG = 0xFFFF };

// The bits of a stream, the next one lowest.
struct bits {
  const uint8_t *next, *end;
  uint64_t held;
  int count;
};

static void refill(struct bits *bits) {
  if (bits->end - bits->next >= 8) {
    uint64_t word;
    memcpy(&word, bits->next, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    bits->held |= word << bits->count;
    int bytes = (63 - bits->count) >> 3;
    bits->next += bytes;
    bits->count += 8 * bytes;
    return;
  }
  while (bits->count <= 56 && bits->next < bits->end) {
    bits->held |= (uint64_t)*bits->next++ << bits->count;
    bits->count += 8;
  }
}

// Takes up to 32 bits; -1 at the end of the stream.
static int64_t take(struct bits *bits, int count) {
  if (bits->count < count) refill(bits);
  if (bits->count < count) return -1;
  int64_t value = (int64_t)(bits->held & ((1ull << count) - 1));
  bits->held >>= count;
  bits->count -= count;
  return value;
}

// A Huffman code. For the next bits of the stream, as many as a short code has at most: the symbol and, in the lowest four bits, its
// length; or LONG, or 0 for no code. Long codes are rare, and are found by their numbers for each length.
struct table {
  int bits;
  uint16_t entries[1 << SHORT_BITS];
  uint16_t number[MAXIMUM_BITS + 1];
  uint16_t sorted[LITERALS];
};

// Makes the table of a code of these lengths. Refuses those that zlib refuses.
static int build(struct table *table, const uint8_t *lengths, int count, int may_be_single, int may_be_empty) {
  int next[MAXIMUM_BITS + 1], place[MAXIMUM_BITS + 1], longest = 0;
  uint16_t *number = table->number;
  memset(number, 0, sizeof table->number);
  for (int symbol = 0; symbol < count; symbol++) number[lengths[symbol]]++;
  number[0] = 0;
  for (int length = 1; length <= MAXIMUM_BITS; length++)
    if (number[length]) longest = length;
  table->bits = longest < SHORT_BITS ? longest : SHORT_BITS;
  memset(table->entries, 0, sizeof *table->entries << table->bits);
  if (longest == 0) return may_be_empty;
  int left = 1, code = 0, before = 0;
  for (int length = 1; length <= MAXIMUM_BITS; length++) {
    left = 2 * left - number[length];
    if (left < 0) return 0;
    next[length] = code;
    place[length] = before;
    code = (code + number[length]) << 1;
    before += number[length];
  }
  // Incomplete: permitted for one code of one bit only.
  if (left > 0 && !(may_be_single && longest == 1)) return 0;
  for (int symbol = 0; symbol < count; symbol++) {
    int length = lengths[symbol];
    if (!length) continue;
    table->sorted[place[length]++] = (uint16_t)symbol;
    unsigned reversed = 0, own = (unsigned)next[length]++;
    for (int bit = 0; bit < length; bit++) reversed |= (own >> bit & 1) << (length - 1 - bit);
    if (length > SHORT_BITS) {
      table->entries[reversed & ((1 << SHORT_BITS) - 1)] = LONG;
      continue;
    }
    for (unsigned entry = reversed; entry < 1u << table->bits; entry += 1u << length)
      table->entries[entry] = (uint16_t)(symbol << 4 | length);
  }
  return 1;
}

// Returns the entry of a long code; 0 for none.
static unsigned long_entry(uint64_t held, const struct table *table) {
  int code = 0, first = 0, index = 0;
  for (int length = 1; length <= MAXIMUM_BITS; length++, held >>= 1) {
    code |= (int)(held & 1);
    int number = table->number[length];
    if (code - first < number) return (unsigned)(table->sorted[index + code - first] << 4 | length);
    index += number;
    first = (first + number) << 1;
    code <<= 1;
  }
  return 0;
}

static inline unsigned entry_of(const struct bits *bits, const struct table *table) {
  unsigned entry = table->entries[bits->held & ((1u << table->bits) - 1)];
  return entry == LONG ? long_entry(bits->held, table) : entry;
}

// Takes a symbol; -1 for none. The caller has refilled.
static inline int symbol(struct bits *bits, const struct table *table) {
  unsigned entry = entry_of(bits, table);
  int length = (int)(entry & 15);
  if (length == 0 || length > bits->count) return -1;
  bits->held >>= length;
  bits->count -= length;
  return (int)(entry >> 4);
}

static int read_lengths(struct bits *bits, struct table *codes, uint8_t *lengths, int *literals, int *distances) {
  static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  int64_t head = take(bits, 14);
  if (head < 0) return 0;
  *literals = (int)(head & 31) + 257;
  *distances = (int)(head >> 5 & 31) + 1;
  if (*literals > 286 || *distances > 30) return 0;
  uint8_t own[19] = {0};
  for (int index = 0; index < (int)(head >> 10) + 4; index++) {
    int64_t length = take(bits, 3);
    if (length < 0) return 0;
    own[order[index]] = (uint8_t)length;
  }
  if (!build(codes, own, 19, 0, 0)) return 0;
  int count = 0, total = *literals + *distances;
  while (count < total) {
    refill(bits);
    int code = symbol(bits, codes);
    if (code < 0) return 0;
    if (code < 16) {
      lengths[count++] = (uint8_t)code;
      continue;
    }
    if (code == 16 && count == 0) return 0;
    int64_t more = take(bits, code == 16 ? 2 : code == 17 ? 3 : 7);
    if (more < 0) return 0;
    int repeats = (int)more + (code == 18 ? 11 : 3);
    if (repeats > total - count) return 0;
    memset(lengths + count, code == 16 ? lengths[count - 1] : 0, (size_t)repeats);
    count += repeats;
  }
  return lengths[END_OF_BLOCK] != 0;
}

// Takes the code of an entry.
static inline void skip(struct bits *bits, unsigned entry) {
  bits->held >>= entry & 15;
  bits->count -= (int)(entry & 15);
}

static inline int is_literal(unsigned entry) { return entry - 1 < (END_OF_BLOCK << 4) - 1; }

// Follows the codes of a block to its end.
static int follow(struct bits *stream, const struct table *literals, const struct table *distances) {
  struct bits bits = *stream;
  for (;;) {
    refill(&bits);
    // With 56 bits there are three literals, whose codes have up to 15 bits.
    unsigned entry = entry_of(&bits, literals);
    if (bits.count >= 56 && is_literal(entry)) {
      skip(&bits, entry);
      entry = entry_of(&bits, literals);
      if (is_literal(entry)) {
        skip(&bits, entry);
        entry = entry_of(&bits, literals);
        if (is_literal(entry)) {
          skip(&bits, entry);
          continue;
        }
      }
      refill(&bits);
    }
    int length = (int)(entry & 15), code = (int)(entry >> 4);
    if (length == 0 || length > bits.count) return 0;
    skip(&bits, entry);
    if (code < END_OF_BLOCK) continue;
    if (code == END_OF_BLOCK) break;
    if (code > 285) return 0;
    // At most 5 + 15 + 13 bits follow.
    if (take(&bits, code < 265 || code == 285 ? 0 : (code - 261) >> 2) < 0) return 0;
    int distance = symbol(&bits, distances);
    if (distance < 0 || distance > 29) return 0;
    if (take(&bits, distance < 4 ? 0 : (distance - 2) >> 1) < 0) return 0;
  }
  *stream = bits;
  return 1;
}

bool cpx_is_strict_deflate(const uint8_t *start, size_t count) {
  struct bits bits = {start, start + count, 0, 0};
  struct table literals, distances;
  for (int isLast = 0; !isLast;) {
    int64_t head = take(&bits, 3);
    if (head < 0) return false;
    isLast = (int)head & 1;
    uint8_t lengths[LITERALS + DISTANCES];
    int symbols = LITERALS, places = DISTANCES;
    switch (head >> 1) {
    case 0: {
      // To the next byte; then a length, its complement, and so many bytes.
      take(&bits, bits.count & 7);
      int64_t size = take(&bits, 32);
      if (size < 0 || (size & 0xFFFF) != (~size >> 16 & 0xFFFF)) return false;
      size &= 0xFFFF;
      // Give back the bytes that are held.
      bits.next -= bits.count >> 3;
      bits.held = 0;
      bits.count = 0;
      if (bits.end - bits.next < size) return false;
      bits.next += size;
      continue;
    }
    case 1:
      memset(lengths, 8, 144);
      memset(lengths + 144, 9, 112);
      memset(lengths + 256, 7, 24);
      memset(lengths + 280, 8, 8);
      memset(lengths + LITERALS, 5, DISTANCES);
      break;
    case 2:
      if (!read_lengths(&bits, &literals, lengths, &symbols, &places)) return false;
      break;
    default: return false;
    }
    if (!build(&literals, lengths, symbols, 1, 0) || !build(&distances, lengths + symbols, places, 1, 1) ||
        !follow(&bits, &literals, &distances))
      return false;
  }
  return true;
}

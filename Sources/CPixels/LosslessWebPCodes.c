// The codes of lossless WebPs: how long they are, and the tables by which they are read.
#include "LosslessWebP.h"

static struct entry *reserve(struct tables *tables, size_t count) {
  if (count > MAX_ENTRIES - tables->count) return NULL;
  if (tables->count + count > tables->capacity) {
    size_t capacity = 2 * tables->capacity + count;
    struct entry *entries = realloc(tables->entries, capacity * sizeof *entries);
    if (!entries) return NULL;
    tables->entries = entries;
    tables->capacity = capacity;
  }
  struct entry *found = tables->entries + tables->count;
  tables->count += count;
  return found;
}

static uint32_t reversed(uint32_t code, unsigned length) {
  uint32_t result = 0;
  for (unsigned bit = 0; bit < length; bit += 1) result |= (code >> bit & 1) << (length - 1 - bit);
  return result;
}

// Makes the table of a complete code, or of a single symbol, whose code has no bits. Returns false for others.
static bool make_table(struct tables *tables, const uint8_t *lengths, size_t symbols, uint32_t *start) {
  uint32_t counts[LONGEST + 1] = {0}, next[LONGEST + 1], left = 1 << LONGEST;
  size_t used = 0, last = 0;
  for (size_t symbol = 0; symbol < symbols; symbol += 1) {
    if (!lengths[symbol]) continue;
    counts[lengths[symbol]] += 1;
    used += 1;
    last = symbol;
  }
  *start = (uint32_t)tables->count;
  struct entry *root = reserve(tables, 1 << ROOT);
  if (!root || used == 0) return false;
  if (used == 1) {
    for (size_t index = 0; index < 1 << ROOT; index += 1) root[index] = (struct entry){(uint16_t)last, 0};
    return true;
  }
  uint32_t code = 0;
  for (unsigned length = 1; length <= LONGEST; length += 1) {
    uint32_t space = counts[length] << (LONGEST - length);
    if (space > left) return false;
    left -= space;
    next[length] = code;
    code = (code + counts[length]) << 1;
  }
  if (left) return false;
  // The longest code behind each root.
  uint8_t longest[1 << ROOT] = {0};
  uint32_t firsts[LONGEST + 1];
  memcpy(firsts, next, sizeof next);
  for (size_t symbol = 0; symbol < symbols; symbol += 1) {
    unsigned length = lengths[symbol];
    if (!length) continue;
    uint32_t bits = reversed(next[length]++, length);
    if (length <= ROOT) {
      for (; bits < 1 << ROOT; bits += 1u << length) root[bits] = (struct entry){(uint16_t)symbol, (uint8_t)length};
    } else if (longest[bits & 0xFF] < length) {
      longest[bits & 0xFF] = (uint8_t)length;
    }
  }
  for (size_t index = 0; index < 1 << ROOT; index += 1) {
    if (!longest[index]) continue;
    size_t place = tables->count - *start;
    unsigned bits = longest[index] - ROOT;
    if (place > UINT16_MAX || !reserve(tables, 1u << bits)) return false;
    tables->entries[*start + index] = (struct entry){(uint16_t)place, (uint8_t)(16 + bits)};
  }
  for (size_t symbol = 0; symbol < symbols; symbol += 1) {
    unsigned length = lengths[symbol];
    if (!length) continue;
    uint32_t bits = reversed(firsts[length]++, length);
    if (length <= ROOT) continue;
    struct entry head = tables->entries[*start + (bits & 0xFF)];
    for (uint32_t more = bits >> ROOT; more < 1u << (head.bits - 16); more += 1u << (length - ROOT)) {
      tables->entries[*start + head.value + more] = (struct entry){(uint16_t)symbol, (uint8_t)(length - ROOT)};
    }
  }
  return true;
}

// Reads the lengths of codes that are coded themselves.
static bool read_lengths(struct reader *reader, struct tables *tables, size_t symbols, uint8_t *lengths) {
  static const uint8_t order[19] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  uint8_t own[19] = {0};
  unsigned count = 4 + take(reader, 4);
  for (unsigned index = 0; index < count; index += 1) own[order[index]] = (uint8_t)take(reader, 3);
  size_t most = symbols, kept = tables->count;
  if (take(reader, 1)) {
    unsigned bits = 2 + 2 * take(reader, 3);
    most = 2 + take(reader, bits);
    if (most > symbols) return false;
  }
  uint32_t start;
  bool is_read = make_table(tables, own, 19, &start);
  uint8_t previous = 8;
  for (size_t symbol = 0; is_read && symbol < symbols && most > 0; most -= 1) {
    fill(reader);
    unsigned value = read_symbol(reader, tables->entries + start);
    if (is_overrun(reader)) is_read = false;
    if (value < 16) {
      lengths[symbol++] = (uint8_t)value;
      if (value) previous = (uint8_t)value;
      continue;
    }
    size_t repeats = value == 16 ? 3 + take(reader, 2) : value == 17 ? 3 + take(reader, 3) : 11 + take(reader, 7);
    if (repeats > symbols - symbol) is_read = false;
    else memset(lengths + symbol, value == 16 ? previous : 0, repeats);
    symbol += repeats;
  }
  // The table is not needed any more.
  tables->count = kept;
  return is_read;
}

static bool read_code(struct reader *reader, struct tables *tables, size_t symbols, uint32_t *start) {
  uint8_t lengths[MAX_SYMBOLS] = {0};
  if (take(reader, 1)) {
    bool has_two = take(reader, 1);
    uint32_t first = take(reader, take(reader, 1) ? 8 : 1);
    uint32_t second = has_two ? take(reader, 8) : first;
    // libavcodec and libwebp differ about the order of two symbols where the first one is higher.
    if (first >= symbols || second >= symbols || (has_two && first >= second)) return false;
    lengths[first] = lengths[second] = 1;
  } else if (!read_lengths(reader, tables, symbols, lengths)) {
    return false;
  }
  return !is_overrun(reader) && make_table(tables, lengths, symbols, start);
}

bool cpx_webp_read_group(struct reader *reader, struct tables *tables, size_t cached, struct group *group) {
  const size_t symbols[KINDS] = {LITERALS + LENGTHS + cached, LITERALS, LITERALS, LITERALS, DISTANCES};
  for (size_t kind = 0; kind < KINDS; kind += 1) {
    if (!read_code(reader, tables, symbols[kind], &group->starts[kind])) return false;
  }
  struct entry red = tables->entries[group->starts[1]], blue = tables->entries[group->starts[2]];
  struct entry alpha = tables->entries[group->starts[3]];
  group->has_literal = !red.bits && !blue.bits && !alpha.bits;
  group->literal = (uint32_t)alpha.value << 24 | (uint32_t)red.value << 16 | blue.value;
  return true;
}

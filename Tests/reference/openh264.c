// Decodes an H.264 stream with OpenH264, and writes its pictures as planes: Y, Cb, Cr of 4:2:0.
//
//     openh264 < STREAM > PICTURES
//
// STREAM has start codes, and one slice in each picture. Exits with 1 at the first error that OpenH264 reports.

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wels/codec_api.h>

static _Noreturn void fail(const char *what, long code) {
  fprintf(stderr, "openh264: %s: %ld\n", what, code);
  exit(1);
}

// Returns standard input, with its size.
static unsigned char *read_stream(size_t *size) {
  size_t capacity = 1 << 20;
  unsigned char *bytes = NULL;
  *size = 0;
  do {
    capacity *= 2;
    bytes = realloc(bytes, capacity);
    if (!bytes) fail("no memory", (long)capacity);
    *size += fread(bytes + *size, 1, capacity - *size, stdin);
  } while (*size == capacity);
  return bytes;
}

// Returns the place of the next start code from `place` on, or the size.
static size_t next_start(const unsigned char *bytes, size_t place, size_t size) {
  for (; place + 3 <= size; place++)
    if (bytes[place] == 0 && bytes[place + 1] == 0 && bytes[place + 2] == 1) return place;
  return size;
}

static void write_picture(unsigned char *const planes[3], const SBufferInfo *info) {
  const SSysMEMBuffer *picture = &info->UsrData.sSystemBuffer;
  if (info->iBufferStatus != 1) return;
  for (int plane = 0; plane < 3; plane++) {
    int isChroma = plane > 0;
    size_t width = (size_t)(picture->iWidth + isChroma) >> isChroma;
    int height = (picture->iHeight + isChroma) >> isChroma;
    for (int row = 0; row < height; row++)
      if (fwrite(planes[plane] + row * picture->iStride[isChroma], 1, width, stdout) != width) fail("write", row);
  }
}

// Writes the pictures that wait for their turn.
static void flush(ISVCDecoder *decoder) {
  int left = 0;
  (*decoder)->GetOption(decoder, DECODER_OPTION_NUM_OF_FRAMES_REMAINING_IN_BUFFER, &left);
  while (left-- > 0) {
    unsigned char *planes[3] = {NULL};
    SBufferInfo info = {0};
    long error = (*decoder)->FlushFrame(decoder, planes, &info);
    if (error) fail("FlushFrame", error);
    write_picture(planes, &info);
  }
}

int main(void) {
  size_t size;
  unsigned char *stream = read_stream(&size);
  ISVCDecoder *decoder;
  long error = WelsCreateDecoder(&decoder);
  if (error) fail("WelsCreateDecoder", error);
  SDecodingParam parameters = {.uiTargetDqLayer = UCHAR_MAX, .eEcActiveIdc = ERROR_CON_DISABLE};
  parameters.sVideoProperty.eVideoBsType = VIDEO_BITSTREAM_AVC;
  error = (*decoder)->Initialize(decoder, &parameters);
  if (error) fail("Initialize", error);

  // A picture with the parameter sets before it.
  size_t start = next_start(stream, 0, size);
  for (size_t place = start; place < size;) {
    size_t next = next_start(stream, place + 3, size);
    int kind = place + 3 < size ? stream[place + 3] & 0x1F : 0;
    // OpenH264 drops pictures that wait when the size changes.
    if (kind == 7) flush(decoder);
    if (kind == 1 || kind == 5 || next == size) {
      unsigned char *planes[3] = {NULL};
      SBufferInfo info = {0};
      error = (*decoder)->DecodeFrameNoDelay(decoder, stream + start, (int)(next - start), planes, &info);
      if (error) fail("DecodeFrameNoDelay", error);
      write_picture(planes, &info);
      start = next;
    }
    place = next;
  }
  flush(decoder);
  (*decoder)->Uninitialize(decoder);
  WelsDestroyDecoder(decoder);
  free(stream);
  return fflush(stdout) == 0 ? 0 : 1;
}

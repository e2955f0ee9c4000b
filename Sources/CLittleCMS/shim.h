// The parts of Little CMS that Swift cannot import: pixel formats, which are nested macros (lcms2.h).
#pragma once

#include <lcms2.h>

// RGB with 8 bits a channel, in 3 bytes, or in 4 whose last one is ignored.
static inline cmsUInt32Number clcms_rgb(int bytes_per_pixel) {
  return COLORSPACE_SH(PT_RGB) | CHANNELS_SH(3) | EXTRA_SH(bytes_per_pixel - 3) | BYTES_SH(1);
}
// Grey with 8 bits, in the first byte of a pixel; the others are ignored.
static inline cmsUInt32Number clcms_grey(int bytes_per_pixel) {
  return COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(bytes_per_pixel - 1) | BYTES_SH(1);
}

// The parts of Little CMS that Swift cannot import: layouts of pixels, which are macros of macros (lcms2.h).
#pragma once

#include <lcms2.h>

// Pixels of 3 bytes, or of 4 with one that is left alone.
static inline cmsUInt32Number clcms_rgb(int bytes_per_pixel) {
  return COLORSPACE_SH(PT_RGB) | CHANNELS_SH(3) | EXTRA_SH(bytes_per_pixel - 3) | BYTES_SH(1);
}
// The same, of which only the first byte counts.
static inline cmsUInt32Number clcms_grey(int bytes_per_pixel) {
  return COLORSPACE_SH(PT_GRAY) | CHANNELS_SH(1) | EXTRA_SH(bytes_per_pixel - 1) | BYTES_SH(1);
}

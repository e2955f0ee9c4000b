#include <string.h>

#include "CPixels.h"

static bool is_opaque(const uint8_t *rgba, size_t width) {
  uint8_t alpha = 255;
  for (size_t column = 0; column < width; column += 1) alpha &= rgba[4 * column + 3];
  return alpha == 255;
}

void cpx_flatten(const uint8_t *rgba, size_t width, const uint8_t colour[3], uint8_t *rgb) {
  // Nearly all pixels of screenshots are opaque.
  if (is_opaque(rgba, width)) {
    // The fourth byte is overwritten by the next pixel: four bytes are written faster than three.
    for (size_t column = 0; column + 1 < width; column += 1) memcpy(rgb + 3 * column, rgba + 4 * column, 4);
    if (width > 0) memcpy(rgb + 3 * (width - 1), rgba + 4 * (width - 1), 3);
    return;
  }
  for (size_t column = 0; column < width; column += 1) {
    uint32_t alpha = rgba[4 * column + 3];
    for (size_t channel = 0; channel < 3; channel += 1) {
      uint32_t mixed = rgba[4 * column + channel] * alpha + colour[channel] * (255 - alpha) + 127;
      rgb[3 * column + channel] = (uint8_t)(mixed / 255);
    }
  }
}

#include <math.h>

#include "CPixels.h"

static uint8_t coded(float light, const uint8_t *codes) {
  // Also for a NaN.
  float share = light > 0 ? (light < 1 ? light : 1) : 0;
  return codes[(size_t)(share * 65535 + 0.5f)];
}

void cpx_to_srgb(
    const uint8_t *from, size_t width, size_t channels, bool is_wide, const float *light, const float matrix[9],
    const float *weights, const uint8_t *codes, uint8_t *to) {
  bool has_alpha = channels % 2 == 0, is_grey = channels < 3;
  size_t bytes = is_wide ? 2 : 1;
  for (size_t column = 0; column < width; column += 1, from += channels * bytes, to += has_alpha ? 4 : 3) {
    uint32_t values[4];
    for (size_t channel = 0; channel < channels; channel += 1) {
      values[channel] = is_wide ? (uint32_t)from[2 * channel] << 8 | from[2 * channel + 1] : from[channel];
    }
    float red = light[values[0]];
    float green = is_grey ? red : light[values[1]];
    float blue = is_grey ? red : light[values[2]];
    if (weights) {
      float gain = powf(weights[0] * red + weights[1] * green + weights[2] * blue, 0.2f);
      red *= gain;
      green *= gain;
      blue *= gain;
    }
    for (size_t row = 0; row < 3; row += 1) {
      to[row] = coded(matrix[3 * row] * red + matrix[3 * row + 1] * green + matrix[3 * row + 2] * blue, codes);
    }
    if (has_alpha) {
      uint32_t alpha = values[channels - 1];
      to[3] = (uint8_t)(is_wide ? (alpha * 255 + 32767) / 65535 : alpha);
    }
  }
}

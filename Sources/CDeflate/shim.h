// Unpacks whole zlib streams, and computes CRC-32; for PNG.
#pragma once

#include <libdeflate.h>

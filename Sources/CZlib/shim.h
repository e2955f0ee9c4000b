// Raw deflate and CRC-32, for the entries of zip archives.
#pragma once

#include <zlib.h>

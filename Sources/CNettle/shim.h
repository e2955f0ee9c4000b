// SHA-256 with the processor's own instructions, where it has them.
#pragma once

#include <nettle/sha2.h>
#include <nettle/version.h>

static inline void cnettle_sha256_digest(struct sha256_ctx *context, unsigned char digest[SHA256_DIGEST_SIZE]) {
#if NETTLE_VERSION_MAJOR >= 4
  nettle_sha256_digest(context, digest);
#else
  nettle_sha256_digest(context, SHA256_DIGEST_SIZE, digest);
#endif
}

// SHA-256 (with the processor's own instructions if it has them), HMAC-SHA-256, and MD5.
#pragma once

#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/sha2.h>
#include <nettle/version.h>

// Ends a computation. Before version 4 each of these functions takes the size of the digest.
#if NETTLE_VERSION_MAJOR >= 4
#define CNETTLE_DIGEST(function, context, size, digest) function(context, digest)
#else
#define CNETTLE_DIGEST(function, context, size, digest) function(context, size, digest)
#endif

static inline void cnettle_sha256_digest(struct sha256_ctx *context, unsigned char digest[SHA256_DIGEST_SIZE]) {
  CNETTLE_DIGEST(nettle_sha256_digest, context, SHA256_DIGEST_SIZE, digest);
}

static inline void cnettle_md5_digest(struct md5_ctx *context, unsigned char digest[MD5_DIGEST_SIZE]) {
  CNETTLE_DIGEST(nettle_md5_digest, context, MD5_DIGEST_SIZE, digest);
}

static inline void cnettle_hmac_sha256(
    const unsigned char *key, size_t keyCount, const unsigned char *bytes, size_t count,
    unsigned char digest[SHA256_DIGEST_SIZE]) {
  struct hmac_sha256_ctx context;
  nettle_hmac_sha256_set_key(&context, keyCount, key);
  nettle_hmac_sha256_update(&context, count, bytes);
  CNETTLE_DIGEST(nettle_hmac_sha256_digest, &context, SHA256_DIGEST_SIZE, digest);
}

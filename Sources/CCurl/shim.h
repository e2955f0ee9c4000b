// libcurl, loaded at the first request to a store: it needs two dozen libraries that a worker with a spool does not
// need.
#pragma once

// curl's type-check macros hide the functions of the same names.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <stddef.h>

#define CCURL_FUNCTIONS(f)                                                                                \
  f(curl_global_init) f(curl_easy_init) f(curl_easy_cleanup) f(curl_easy_reset) f(curl_easy_setopt)       \
      f(curl_easy_perform) f(curl_easy_getinfo) f(curl_easy_strerror) f(curl_slist_append)                \
          f(curl_slist_free_all)

// An immutable table of functions.
typedef struct __attribute__((swift_attr("@Sendable"))) ccurl_library {
#define CCURL_DECLARE(name) __typeof__(name) *name;
  CCURL_FUNCTIONS(CCURL_DECLARE)
#undef CCURL_DECLARE
} ccurl_library;

// Returns NULL, or the reason why the library cannot be loaded. Call it once.
static inline const char *ccurl_load(ccurl_library *library) {
  void *loaded = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return dlerror();
#define CCURL_BIND(name) \
  if (!(library->name = (__typeof__(name) *)dlsym(loaded, #name))) return dlerror();
  CCURL_FUNCTIONS(CCURL_BIND)
#undef CCURL_BIND
  return library->curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? NULL : "curl_global_init";
}

// Setters for options: Swift cannot call variadic functions.
static inline CURLcode ccurl_set_number(const ccurl_library *library, CURL *curl, CURLoption option, long value) {
  return library->curl_easy_setopt(curl, option, value);
}
static inline CURLcode ccurl_set_size(const ccurl_library *library, CURL *curl, CURLoption option, curl_off_t value) {
  return library->curl_easy_setopt(curl, option, value);
}
static inline CURLcode ccurl_set_text(const ccurl_library *library, CURL *curl, CURLoption option, const char *value) {
  return library->curl_easy_setopt(curl, option, value);
}
static inline CURLcode ccurl_set_headers(const ccurl_library *library, CURL *curl, struct curl_slist *headers) {
  return library->curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
}

typedef size_t (*ccurl_bytes_function)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_function)(void *context, curl_off_t offset, int origin);
typedef int (*ccurl_progress_function)(
    void *context, curl_off_t expected, curl_off_t received, curl_off_t toSend, curl_off_t sent);

// Sets the callbacks for header lines, response bytes, request bytes, seeking and progress.
static inline CURLcode ccurl_set_callbacks(
    const ccurl_library *library, CURL *curl, ccurl_bytes_function header, ccurl_bytes_function write,
    ccurl_bytes_function read, ccurl_seek_function seek, ccurl_progress_function progress, void *context) {
  CURLcode code = library->curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_HEADERDATA, context);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_WRITEDATA, context);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_READFUNCTION, read);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_READDATA, context);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, seek);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_SEEKDATA, context);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
  if (!code) code = library->curl_easy_setopt(curl, CURLOPT_XFERINFODATA, context);
  return code;
}

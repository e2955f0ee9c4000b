// What compiler-rt's libFuzzer has no header for, and what Swift cannot see of Linux.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// compiler-rt/lib/fuzzer/FuzzerInterface.h
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*run)(const uint8_t *bytes, size_t count));

// memfd_create(2): glibc declares it under _GNU_SOURCE only, which a module cannot ask for.
static inline int fuzz_memory_file(const char *name) { return (int)syscall(SYS_memfd_create, name, 1u); }

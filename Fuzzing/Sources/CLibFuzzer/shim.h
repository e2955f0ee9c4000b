// Declares the entry point of compiler-rt's libFuzzer, which has no header for it.
#pragma once

#include <stddef.h>
#include <stdint.h>

// compiler-rt/lib/fuzzer/FuzzerInterface.h
int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*run)(const uint8_t *bytes, size_t count));

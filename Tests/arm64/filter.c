// Prints what the system call filter of CLinux answers. The program takes the filter from clinux_only_compute itself,
// whose calls it catches, and interprets it, since an emulator ignores filters. Each line: the group, the number of the
// system call, and the answer.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter filter[BPF_MAXINSNS];
static size_t length;

static long catch(long number, ...) {
  va_list rest;
  va_start(rest, number);
  unsigned long operation = va_arg(rest, unsigned), flags = va_arg(rest, unsigned);
  const struct sock_fprog *program = va_arg(rest, void *);
  va_end(rest);
  if (number != SYS_seccomp || operation != SECCOMP_SET_MODE_FILTER || flags != 0 || program->len > BPF_MAXINSNS) exit(70);
  length = program->len;
  memcpy(filter, program->filter, length * sizeof *filter);
  return 0;
}

// The headers above declare the real functions; the filter below calls these.
static int no_new_privileges;
static int control(int option, ...) { return option == PR_SET_NO_NEW_PRIVS ? no_new_privileges = 1, 0 : -1; }
#define syscall catch
#define prctl control
#include "sandbox.h"
#undef prctl
#undef syscall

// Runs the filter as the kernel does (Documentation/networking/filter.rst). It knows the instructions of the filter, and no
// others.
static uint32_t answer(struct seccomp_data data) {
  uint32_t accumulator = 0;
  for (size_t index = 0; index < length; index += 1) {
    const struct sock_filter *step = &filter[index];
    switch (step->code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (step->k % 4 != 0 || step->k > sizeof data - 4) exit(70);
        memcpy(&accumulator, (const char *)&data + step->k, 4);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K: index += accumulator == step->k ? step->jt : step->jf; break;
      case BPF_JMP | BPF_JSET | BPF_K: index += accumulator & step->k ? step->jt : step->jf; break;
      case BPF_RET | BPF_K: return step->k;
      default: exit(70);
    }
  }
  exit(70);
}

static void show(const char *group, unsigned architecture, uint32_t first, uint32_t past, uint64_t protection) {
  for (uint32_t number = first; number < past; number += 1) {
    struct seccomp_data data = {.nr = (int)number, .arch = architecture, .args = {0, 4096, protection, ~0ull, ~0ull, ~0ull}};
    uint32_t result = answer(data);
    if (result == SECCOMP_RET_KILL_PROCESS) continue;
    if (result == SECCOMP_RET_ALLOW) printf("%s %u allow\n", group, number);
    else if ((result & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO) printf("%s %u errno %u\n", group, number, result & SECCOMP_RET_DATA);
    else printf("%s %u other %#x\n", group, number, result);
  }
}

int main(void) {
  if (clinux_only_compute() != 0 || !no_new_privileges || length == 0) return 1;
#if defined(__x86_64__)
  const unsigned own = AUDIT_ARCH_X86_64, others[] = {AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64};
#else
  const unsigned own = AUDIT_ARCH_AARCH64, others[] = {AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64};
#endif
  show("data", own, 0, 2048, PROT_READ | PROT_WRITE);
  show("code", own, 0, 2048, PROT_READ | PROT_EXEC);
  // Numbers of x32 programs, the highest ones, and system calls of other architectures.
  show("high", own, 0x40000000, 0x40000800, 0);
  show("high", own, 0xFFFFF800, 0xFFFFFFFF, 0);
  for (int index = 0; index < 2; index += 1) show("other", others[index], 0, 2048, 0);
  return 0;
}

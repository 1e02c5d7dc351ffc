/*
 * Lets User-mode Linux run on CPUs with large vector registers.
 *
 * It saves a process's registers into a buffer made for AVX-512 and writes them back from it. Linux takes
 * nothing less than the whole of the CPU's extended state (xstateregs_set, arch/x86/kernel/fpu/regset.c), which
 * is larger where there is AMX. Preloaded, this fills what is missing with what the process has.
 */
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char whole[1 << 16];

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	va_start(rest, request);
	long pid = va_arg(rest, long);
	void *addr = va_arg(rest, void *);
	void *data = va_arg(rest, void *);
	va_end(rest);

	/* The system call stores what glibc's function returns (ptrace(2), C library/kernel differences). */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		long word;
		long failed = syscall(SYS_ptrace, (long)request, pid, addr, &word);
		return failed ? failed : word;
	}
	if (request == PTRACE_SETREGSET && addr == (void *)NT_X86_XSTATE) {
		struct iovec *given = data, all = { whole, sizeof whole };
		if (syscall(SYS_ptrace, (long)PTRACE_GETREGSET, pid, addr, &all) < 0)
			return -1;
		if (all.iov_len > given->iov_len) {
			memcpy(whole, given->iov_base, given->iov_len);
			data = &all;
		}
		return syscall(SYS_ptrace, (long)request, pid, addr, data);
	}
	return syscall(SYS_ptrace, (long)request, pid, addr, data);
}

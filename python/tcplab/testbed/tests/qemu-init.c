/*
 * The first process of a kernel in QEMU: loads what the kernel needs to see the machine's files, makes them its own
 * root, runs a script there and powers off. `folder=` on the kernel's command line names the folder with the script.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	perror(what);
	reboot(RB_POWER_OFF);
}

int main(void)
{
	char name[64], script[4096];
	/* The kernel hands what it does not know to its first process as environment. */
	const char *folder = getenv("folder");
	FILE *modules = fopen("/modules", "r");

	while (modules && fscanf(modules, "%63s", name) == 1) {
		int file = open(name, O_RDONLY | O_CLOEXEC);

		must(file < 0, name);
		must(syscall(SYS_finit_module, file, "", 0), name);
	}
	must(mkdir("/machine", 0700), "/machine");
	must(mount("machine", "/machine", "virtiofs", 0, NULL), "the machine's files");
	must(chdir("/machine"), "/machine");
	must(mount(".", "/", NULL, MS_MOVE, NULL), "the machine's files as root");
	must(chroot("."), "the machine's files as root");
	snprintf(script, sizeof(script), "%s/init", folder ? folder : "");
	if (fork() == 0) {
		execl("/bin/sh", "sh", script, (char *)NULL);
		perror(script);
		_exit(127);
	}
	while (wait(NULL) > 0)
		;
	reboot(RB_POWER_OFF);
}

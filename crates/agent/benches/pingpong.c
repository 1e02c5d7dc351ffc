/* The least a TCP ping-pong takes: two sockets, two loops, nothing else.
 *
 * pingpong serve PORT SIZE SPIN CPU
 * pingpong ask HOST PORT SIZE COUNT SPIN CPU     prints the median round trip in ns
 *
 * SPIN 1 polls non-blocking sockets; CPU -1 leaves the choice to the kernel. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static int give(int fd, const char *message, long size)
{
	for (long done = 0; done < size;) {
		ssize_t n = send(fd, message + done, size - done, MSG_NOSIGNAL);

		if (n > 0)
			done += n;
		else if (errno != EAGAIN && errno != EINTR)
			return -1;
	}
	return 0;
}

static int take(int fd, char *message, long size)
{
	for (long done = 0; done < size;) {
		ssize_t n = recv(fd, message + done, size - done, 0);

		if (n > 0)
			done += n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return -1;
	}
	return 0;
}

static void prepare(int fd, int spin)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (spin)
		fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set) != 0)
		perror("sched_setaffinity");
}

static int later(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int serves = argc == 6 && strcmp(argv[1], "serve") == 0;
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (serves) {
		long size = atol(argv[3]);
		char *message = malloc(size);

		pin(atoi(argv[5]));
		at.sin_port = htons(atoi(argv[2]));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1)) {
			perror("listen");
			return 1;
		}
		fd = accept(fd, NULL, NULL);
		prepare(fd, atoi(argv[4]));
		while (take(fd, message, size) == 0 && give(fd, message, size) == 0)
			;
		return 0;
	}
	if (argc != 8)
		return 2;
	long size = atol(argv[4]), count = atol(argv[5]);
	char *message = calloc(1, size);
	long *times = malloc(count * sizeof(long));

	pin(atoi(argv[7]));
	at.sin_port = htons(atoi(argv[3]));
	inet_pton(AF_INET, argv[2], &at.sin_addr);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		perror("connect");
		return 1;
	}
	prepare(fd, atoi(argv[6]));
	for (long i = 0; i < count; i++) {
		long begun = now();

		if (give(fd, message, size) || take(fd, message, size))
			return 1;
		times[i] = now() - begun;
	}
	qsort(times, count, sizeof(long), later);
	printf("%ld\n", times[count / 2]);
	return 0;
}

/*
 * Virtual time for User-mode Linux.
 *
 * Debian's kernel is built without UML's time-travel mode. Preloaded, this gives the kernel a clock that advances
 * only while it is idle: it jumps to the next timer. All work then takes no time, and a run repeats to the nanosecond
 * on a machine of any speed. Reading the clock costs 16 ns, and more when it is read often without idling, so that
 * a loop which waits for the time ends.
 *
 * The kernel uses clock_gettime(2), one POSIX timer and, to idle, sigsuspend(2). It boots in real time, since some
 * of its benchmarks spin until the timer interrupts them. Virtual time begins when the file exists that the
 * environment variable VIRTUAL_CLOCK names.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ull

static int is_virtual;
static int host_timer;
static pid_t kernel;
static uint64_t now;
static uint64_t expires; /* 0: not armed */
static uint64_t interval;
static unsigned readings; /* since the kernel was last idle */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static uint64_t ns_of(struct timespec ts)
{
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void expire(void)
{
	expires = interval ? expires + interval : 0;
	syscall(SYS_tgkill, getpid(), kernel, SIGALRM);
}

static void begin(void)
{
	struct timespec ts;
	struct itimerspec left, off = { 0 };
	is_virtual = 1;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	now = ns_of(ts);
	syscall(SYS_timer_settime, host_timer, 0, &off, &left);
	interval = ns_of(left.it_interval);
	/* One that has just expired: the host drops its signal, which is blocked here, as the timer is set. */
	expires = now + ns_of(left.it_value);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!is_virtual)
		return syscall(SYS_clock_gettime, clock, ts);
	now += ++readings < 10000 ? 16 : 10000;
	*ts = timespec_of(now);
	if (expires && now >= expires)
		expire();
	return 0;
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	kernel = syscall(SYS_gettid);
	*timer = &host_timer;
	return syscall(SYS_timer_create, clock, event, &host_timer);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	(void)timer;
	if (!is_virtual)
		return syscall(SYS_timer_settime, host_timer, flags, new, old);
	if (old)
		*old = (struct itimerspec){ 0 };
	uint64_t value = ns_of(new->it_value);
	interval = ns_of(new->it_interval);
	expires = value ? value + (flags & TIMER_ABSTIME ? 0 : now) : 0;
	return 0;
}

int timer_gettime(timer_t timer, struct itimerspec *left)
{
	(void)timer;
	if (!is_virtual)
		return syscall(SYS_timer_gettime, host_timer, left);
	*left = (struct itimerspec){
		.it_interval = timespec_of(interval),
		.it_value = timespec_of(expires > now ? expires - now : expires ? 1 : 0),
	};
	return 0;
}

int sigsuspend(const sigset_t *mask)
{
	const char *file = getenv("VIRTUAL_CLOCK");
	if (!is_virtual && file && access(file, F_OK) == 0)
		begin();
	if (is_virtual && expires) {
		readings = 0;
		if (expires > now)
			now = expires;
		expire();
	}
	return syscall(SYS_rt_sigsuspend, mask, 8);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded in front of the C library: the call that SIGNAL_AT names sends its process the signal SIGNAL_NUMBER
 * and then does its work, so that the signal comes at a known point of the writing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static void *reached(const char *name)
{
    const char *at = getenv("SIGNAL_AT"), *number = getenv("SIGNAL_NUMBER");
    if (at && number && !strcmp(at, name))
        raise(atoi(number));
    return dlsym(RTLD_NEXT, name);
}

int fchmod(int fd, mode_t mode)
{
    int (*original)(int, mode_t);
    *(void **)&original = reached("fchmod");
    return original(fd, mode);
}

int fsync(int fd)
{
    int (*original)(int);
    *(void **)&original = reached("fsync");
    return original(fd);
}

int rename(const char *from, const char *to)
{
    int (*original)(const char *, const char *);
    *(void **)&original = reached("rename");
    return original(from, to);
}

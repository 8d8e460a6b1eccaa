/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 4096 };

static bool numbers_of(const char *folder, const char *file, int min_count, double *first, double *second)
{
    char path[LINE + 64];
    int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    int got = f ? fscanf(f, "%lf %lf", first, second) : 0;
    if (f)
        fclose(f);
    return got >= min_count;
}

/* The CPU quota of a control group, of version 1 or 2, in processors. Infinity: no limit, or no such file. */
static double share_of(const char *folder, bool unified)
{
    double quota, period, ignored;
    bool known =
        unified ? numbers_of(folder, "cpu.max", 2, &quota, &period) /* "max" is not parsed as a number. */
                : numbers_of(folder, "cpu.cfs_quota_us", 1, &quota, &ignored) &&
                      numbers_of(folder, "cpu.cfs_period_us", 1, &period, &ignored);
    return known && quota > 0 && period > 0 ? quota / period : HUGE_VAL;
}

/* The least quota of a group and its ancestors. A container sees its own group as the root, but may read the
 * path that the group has outside. */
static double least_share(const char *mount, char *group, bool unified)
{
    double least = HUGE_VAL;
    for (;;) {
        char folder[LINE];
        int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
        if (length > 0 && (size_t)length < sizeof folder)
            least = fmin(least, share_of(folder, unified));
        char *last = strrchr(group, '/');
        if (!last)
            return least;
        *last = '\0';
    }
}

/* Whether a comma-separated list contains "cpu". */
static bool has_cpu(const char *names)
{
    for (size_t n; *names; names += n + (names[n] == ','))
        if ((n = strcspn(names, ",")) == 3 && strncmp(names, "cpu", 3) == 0)
            return true;
    return false;
}

unsigned dq_cpu_quota(const char *root)
{
    char path[LINE], mount[LINE], line[LINE];
    double least = HUGE_VAL;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) { /* number:controllers:path. */
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool unified = names[1] == '\0';
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, unified ? "" : "/cpu");
        if (unified || has_cpu(names + 1))
            least = fmin(least, least_share(mount, group, unified));
    }
    if (f)
        fclose(f);
    return isinf(least) || least > 1e6 ? 0 : least < 1 ? 1 : (unsigned)least;
}

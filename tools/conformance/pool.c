/* SPDX-License-Identifier: Apache-2.0 */
/* Runs cases in child processes, so that a crash fails one case and not the whole run. A child processes a
 * range of the list, and reports the begin and result of each case through a pipe. If it dies early, its
 * current case is blamed, and a new child continues after that case. */
#include "conformance.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Maximum records of a batch per child: enough to amortize fork, few enough to distribute among jobs. */
#define MAX_RANGE 256
/* Maximum bytes of a dead child's output that are shown. */
#define SHOWN_OUTPUT 8192

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif

typedef struct worker {
    pid_t pid; /* 0: idle. */
    int pipe;
    FILE *output;     /* The child's output; emptied for each child. */
    size_t next, end; /* Its remaining cases; `next` is the current one. */
    size_t done_here; /* Number of cases that this child finished. */
    double deadline;
    bool timed_out;
    size_t filled;
    union {
        unsigned char bytes[sizeof(cf_result)];
        cf_result result;
    } in;
} worker;

typedef struct pool {
    cf_list *list;
    const cf_options *options;
    cf_runner *run;
    worker *workers;
    size_t next; /* First case that is not assigned to a worker. */
    size_t finished;
    bool show_progress;
} pool;

/* ---- in the child ---- */

static int child_pipe;

static void send_result(const cf_result *result)
{
    const unsigned char *bytes = (const unsigned char *)result;
    for (size_t sent = 0; sent < sizeof *result;) {
        ssize_t n = write(child_pipe, bytes + sent, sizeof *result - sent);
        if (n <= 0 && errno != EINTR)
            exit(EXIT_FAILURE);
        if (n > 0)
            sent += (size_t)n;
    }
}

static void set_limits(const cf_options *options)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
#if !defined(ADDRESS_SANITIZER) /* AddressSanitizer reserves terabytes of addresses. */
    if (options->memory_mib != 0) {
        rlim_t bytes = (rlim_t)options->memory_mib << 20;
        struct rlimit memory = {bytes, bytes};
        setrlimit(RLIMIT_AS, &memory);
    }
#else
    (void)options;
#endif
}

/* Ends with exit, not _exit, so that a leak checker can report. */
static _Noreturn void child(const pool *p, const worker *w)
{
    set_limits(p->options);
    for (size_t i = w->next; i < w->end; i++) {
        cf_result result;
        memset(&result, 0, sizeof result);
        result.index = (uint32_t)i;
        result.outcome = CF_NOT_RUN;
        double start = cf_now();
        p->run(&p->list->items[i], p->options, &result, send_result);
        result.seconds = cf_now() - start;
        send_result(&result);
    }
    exit(EXIT_SUCCESS);
}

/* ---- in the parent ---- */

static size_t range_end(const pool *p, size_t begin)
{
    const cf_list *list = p->list;
    if (list->items[begin].folder != NULL)
        return begin + 1;
    size_t share = (list->count - begin) / (4 * (size_t)p->options->jobs) + 1;
    size_t limit = begin + (share < MAX_RANGE ? share : MAX_RANGE);
    size_t end = begin;
    while (end < limit && end < list->count && list->items[end].folder == NULL)
        end++;
    return end;
}

static bool start(pool *p, worker *w, size_t begin, size_t end)
{
    int ends[2];
    if (pipe(ends) != 0)
        return cf_complain("no pipe to a new process: %s", strerror(errno));
    rewind(w->output);
    if (ftruncate(fileno(w->output), 0) != 0)
        return cf_complain("a temporary file cannot be emptied: %s", strerror(errno));
    *w = (worker){.output = w->output, .pipe = ends[0], .next = begin, .end = end};
    w->deadline = cf_now() + p->options->timeout;
    fflush(stdout);
    fflush(stderr);
    w->pid = fork();
    if (w->pid == 0) {
        close(ends[0]);
        child_pipe = ends[1];
        dup2(fileno(w->output), STDOUT_FILENO);
        dup2(fileno(w->output), STDERR_FILENO);
        child(p, w);
    }
    close(ends[1]);
    if (w->pid > 0)
        return true;
    w->pid = 0;
    close(ends[0]);
    return cf_complain("no new process: %s", strerror(errno));
}

static void set_message(cf_case *item, const char *message)
{
    free(item->message);
    item->message = message[0] == '\0' ? NULL : cf_strdup(message);
}

static void show(pool *p, const cf_case *item)
{
    static const char *const words[] = {"not run", "passed", "FAILED", "FAILED", "skipped"};
    if (p->options->verbose)
        printf("%-8s %s%s%s\n", words[item->outcome], item->name, item->message == NULL ? "" : ": ",
               item->message == NULL ? "" : item->message);
    else if (p->show_progress && p->finished % 16 == 0)
        fprintf(stderr, "\r%zu of %zu", p->finished, p->list->count);
}

static void take_result(pool *p, worker *w)
{
    cf_result *r = &w->in.result;
    w->filled = 0;
    if (r->index != w->next || w->next >= w->end)
        return;
    r->op[sizeof r->op - 1] = '\0';
    r->message[sizeof r->message - 1] = '\0';
    cf_case *item = &p->list->items[w->next];
    memcpy(item->op, r->op, sizeof item->op);
    w->deadline = cf_now() + p->options->timeout;
    if (r->outcome == CF_NOT_RUN)
        return;
    item->seconds = r->seconds;
    item->outcome = (cf_outcome)r->outcome;
    set_message(item, r->message);
    if (item->outcome == CF_FAILED && item->skip_reason != NULL)
        item->outcome = CF_SKIPPED;
    w->next++;
    w->done_here++;
    p->finished++;
    show(p, item);
}

/* Reads the available data from the pipe. False at its end. */
static bool read_pipe(pool *p, worker *w)
{
    ssize_t n = read(w->pipe, w->in.bytes + w->filled, sizeof w->in - w->filled);
    if (n < 0)
        return errno == EINTR;
    w->filled += (size_t)n;
    if (w->filled == sizeof w->in)
        take_result(p, w);
    return n > 0;
}

static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
                 {SIGILL, "SIGILL"},   {SIGKILL, "SIGKILL"}, {SIGTERM, "SIGTERM"}, {SIGPIPE, "SIGPIPE"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    return "a signal";
}

/* The most informative line of a child's output: a sanitizer's, else the first. Modifies `text`. */
static const char *telling_line(char *text)
{
    static const char *const marks[] = {"ERROR: ", "runtime error: "};
    char *found = NULL;
    for (size_t i = 0; i < 2 && found == NULL; i++)
        found = strstr(text, marks[i]);
    while (found != NULL && found > text && found[-1] != '\n')
        found--;
    char *line = found != NULL ? found : text + strspn(text, "\n");
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static char *read_output(const worker *w)
{
    char *text = cf_realloc(NULL, SHOWN_OUTPUT + 1, 1);
    ssize_t n = pread(fileno(w->output), text, SHOWN_OUTPUT, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* Marks the case of a child that crashed or printed as broken, whatever is expected of it. */
static void charge(pool *p, const worker *w, int status, char *output)
{
    bool early = w->next < w->end;
    cf_case *item = &p->list->items[early ? w->next : w->end - 1];
    if (output[0] != '\0')
        fprintf(stderr, "---- printed by %s:\n%s%s\n", item->name, output,
                strlen(output) == SHOWN_OUTPUT ? "\n(cut)" : "");
    char *what;
    if (w->timed_out)
        what = cf_format("took longer than %g s", p->options->timeout);
    else if (WIFSIGNALED(status))
        what = cf_format("crashed with %s (signal %d)", signal_name(WTERMSIG(status)), WTERMSIG(status));
    else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        what = cf_format("its process exited with code %d", WEXITSTATUS(status));
    else
        what = cf_strdup(early ? "its process exited too early" : "its process printed something");
    const char *line = telling_line(output);
    char *where = !early && w->done_here > 1
                      ? cf_format(" at the end, after %zu cases of one process", w->done_here)
                      : cf_strdup("");
    char *message = cf_format("%s%s%s%.300s", what, where, line[0] == '\0' ? "" : ": ", line);
    set_message(item, message);
    item->outcome = CF_BROKEN;
    if (early) {
        item->seconds = w->timed_out ? p->options->timeout : 0;
        p->finished++;
    }
    show(p, item);
    free(message);
    free(where);
    free(what);
}

/* Waits for a child whose pipe is closed. True if a new child must run its remaining cases. */
static bool finish(pool *p, worker *w)
{
    int status = 0;
    close(w->pipe);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    char *output = read_output(w);
    if (w->next < w->end || status != 0 || output[0] != '\0')
        charge(p, w, status, output);
    free(output);
    return w->next < w->end && ++w->next < w->end;
}

static bool fill(pool *p)
{
    for (unsigned i = 0; i < p->options->jobs && p->next < p->list->count; i++) {
        worker *w = &p->workers[i];
        if (w->pid != 0)
            continue;
        size_t end = range_end(p, p->next);
        if (!start(p, w, p->next, end))
            return false;
        p->next = end;
    }
    return true;
}

/* Ends children whose time is over. Returns the milliseconds until the next timeout. */
static int watch_clock(pool *p)
{
    double now = cf_now(), first = now + 60;
    for (unsigned i = 0; i < p->options->jobs; i++) {
        worker *w = &p->workers[i];
        if (w->pid == 0 || w->timed_out)
            continue;
        if (w->deadline <= now) {
            w->timed_out = true;
            kill(w->pid, SIGKILL);
        } else if (w->deadline < first) {
            first = w->deadline;
        }
    }
    return (int)((first - now) * 1000) + 1;
}

/* One iteration: waits for a report of any child and processes it. False if no child can be started. */
static bool step(pool *p, struct pollfd *fds, unsigned *running)
{
    *running = 0;
    for (unsigned i = 0; i < p->options->jobs; i++) {
        worker *w = &p->workers[i];
        fds[i] = (struct pollfd){.fd = w->pid != 0 ? w->pipe : -1, .events = POLLIN};
        *running += w->pid != 0;
    }
    if (*running == 0)
        return true;
    if (poll(fds, p->options->jobs, watch_clock(p)) <= 0)
        return true;
    for (unsigned i = 0; i < p->options->jobs; i++) {
        worker *w = &p->workers[i];
        if (fds[i].revents == 0 || read_pipe(p, w))
            continue;
        if (finish(p, w) && !start(p, w, w->next, w->end))
            return false;
    }
    return true;
}

static bool run_pool(pool *p, struct pollfd *fds)
{
    unsigned running = 1;
    while (running > 0 || p->next < p->list->count)
        if (!fill(p) || !step(p, fds, &running))
            return false;
    return true;
}

bool cf_run_all(cf_list *list, const cf_options *options, cf_runner *run)
{
    pool p = {.list = list, .options = options, .run = run};
    p.show_progress = isatty(STDERR_FILENO) == 1 && !options->verbose;
    p.workers = cf_realloc(NULL, options->jobs, sizeof *p.workers);
    memset(p.workers, 0, options->jobs * sizeof *p.workers);
    struct pollfd *fds = cf_realloc(NULL, options->jobs, sizeof *fds);
    bool good = true;
    for (unsigned i = 0; i < options->jobs && good; i++) {
        p.workers[i].output = tmpfile();
        if (p.workers[i].output == NULL)
            good = cf_complain("no temporary file: %s", strerror(errno));
    }
    good = good && run_pool(&p, fds);
    for (unsigned i = 0; i < options->jobs; i++) {
        if (p.workers[i].pid != 0) {
            kill(p.workers[i].pid, SIGKILL);
            waitpid(p.workers[i].pid, NULL, 0);
            close(p.workers[i].pipe);
        }
        if (p.workers[i].output != NULL)
            fclose(p.workers[i].output);
    }
    if (p.show_progress)
        fputs("\r\x1b[K", stderr);
    free(p.workers);
    free(fds);
    return good;
}

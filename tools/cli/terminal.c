/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include "io/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static cli_color color_mode;
static bool quiet;

/* ---- Colors -------------------------------------------------------------------------------------------- */

static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return term && !strcmp(term, "dumb");
}

static bool has_colors(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    if (color_mode != CLI_COLOR_AUTO)
        return color_mode == CLI_COLOR_ALWAYS;
    return !(no_color && *no_color) && !is_dumb() && isatty(fileno(stream));
}

const char *cli_style_on(FILE *stream, cli_style style)
{
    static const char *const sequences[] = {[CLI_STYLE_TITLE] = "\x1b[1m",
                                            [CLI_STYLE_GOOD] = "\x1b[32m",
                                            [CLI_STYLE_BAD] = "\x1b[1;31m",
                                            [CLI_STYLE_WARNING] = "\x1b[33m"};
    return has_colors(stream) ? sequences[style] : "";
}

const char *cli_style_off(FILE *stream)
{
    return has_colors(stream) ? "\x1b[0m" : "";
}

/* ---- Messages ------------------------------------------------------------------------------------------ */

void cli_warn(const char *format, ...)
{
    char message[1024];
    va_list args;
    if (quiet)
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cli_progress_end();
    fprintf(stderr, "dqrun: %swarning:%s %s\n", cli_style_on(stderr, CLI_STYLE_WARNING),
            cli_style_off(stderr), io_printable(message));
}

void cli_complain(const char *message)
{
    char line[1100];
    snprintf(line, sizeof line, "%s", message);
    cli_progress_end();
    fprintf(stderr, "%sdqrun:%s %s\n", cli_style_on(stderr, CLI_STYLE_BAD), cli_style_off(stderr),
            io_printable(line));
}

/* ---- Progress ------------------------------------------------------------------------------------------ */

static struct {
    bool allowed;     /* Standard error is a terminal that can show it. */
    const char *what; /* NULL: no work in progress. */
    double start, drawn_at;
    bool drawn;
} progress;

static const double LONG_WORK = 2;        /* Least seconds of work for a progress bar. */
static const double ESTIMATE_AFTER = 0.5; /* Seconds before the remaining time is estimated. */
static const double REDRAW = 0.1;         /* Seconds between two drawings. */

enum { BAR_MAX = 40, COLUMNS_DEFAULT = 80, TEXT_COLUMNS = 40 /* Maximum, without text and bar. */ };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void cli_terminal_start(const cli_options *options)
{
    color_mode = options->color;
    quiet = options->quiet;
    progress.allowed = !options->quiet && !options->verbose && !options->why && !options->no_progress &&
                       !is_dumb() && isatty(STDERR_FILENO);
}

void cli_progress_begin(const char *what)
{
    progress.what = what;
    progress.start = progress.drawn_at = now();
}

static int columns(void)
{
    struct winsize size;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : COLUMNS_DEFAULT;
}

/* Writes a duration: "90 s", "2 min 5 s", "3 h 10 min". */
static void duration_text(double seconds, char *text, size_t size)
{
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (s < 120)
        snprintf(text, size, "%lu s", s);
    else if (s < 7200)
        snprintf(text, size, "%lu min %lu s", s / 60, s % 60);
    else
        snprintf(text, size, "%lu h %lu min", s / 3600, s / 60 % 60);
}

static void draw(double done, double left)
{
    char bar[BAR_MAX + 1], rest[48];
    int capacity = columns() - (int)strlen(progress.what) - TEXT_COLUMNS;
    int width = capacity > BAR_MAX ? BAR_MAX : capacity;
    if (width < 1) /* The terminal is too narrow: a wrapped line could not be erased. */
        return;
    int filled = (int)(done * width);
    memset(bar, '.', (size_t)width);
    memset(bar, '#', (size_t)filled);
    bar[width] = 0;
    duration_text(left, rest, sizeof rest);
    fprintf(stderr, "\r\x1b[K%s [%s] %3d %%, %s left", progress.what, bar, (int)(done * 100), rest);
    fflush(stderr);
    progress.drawn = true;
}

void cli_progress(double done)
{
    if (!progress.allowed || !progress.what)
        return;
    double time = now(), spent = time - progress.start;
    done = done < 0 ? 0 : done > 1 ? 1 : done;
    if (spent < ESTIMATE_AFTER || time - progress.drawn_at < REDRAW || done <= 0 || spent / done < LONG_WORK)
        return;
    progress.drawn_at = time;
    draw(done, spent / done - spent);
}

void cli_progress_nodes(uint64_t nodes)
{
    if (!progress.allowed || !progress.what)
        return;
    char spent_text[48];
    double time = now(), spent = time - progress.start;
    if (spent < LONG_WORK || time - progress.drawn_at < REDRAW)
        return;
    progress.drawn_at = time;
    duration_text(spent, spent_text, sizeof spent_text);
    if (columns() <= (int)strlen(progress.what) + TEXT_COLUMNS)
        return;
    fprintf(stderr, "\r\x1b[K%s: %" PRIu64 " nodes, %s", progress.what, nodes, spent_text);
    fflush(stderr);
    progress.drawn = true;
}

bool cli_progress_allowed(void)
{
    return progress.allowed;
}

void cli_progress_end(void)
{
    if (progress.drawn)
        fputs("\r\x1b[K", stderr);
    progress.drawn = false;
}

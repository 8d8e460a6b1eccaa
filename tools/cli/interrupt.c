/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include "io/common.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static _Atomic(dq_session *) watched;
static volatile sig_atomic_t interrupted, out_of_time;
static double timeout; /* Seconds; 0: none. */
static struct sigaction before;
static bool catches; /* SIGINT is caught. */

static void cancel(void)
{
    dq_session *session = atomic_load(&watched);
    if (session)
        dq_session_cancel(session);
}

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
    cancel();
}

static void on_time(int number)
{
    static const char message[] = "dqrun: the time of --timeout is up\n";
    (void)number;
    out_of_time = 1;
    if (atomic_load(&watched)) {
        cancel();
    } else {
        ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
        (void)written;
        _exit(CLI_EXIT_TIMEOUT);
    }
}

static void set_clock(double seconds)
{
    struct itimerval clock = {0};
    clock.it_value.tv_sec = (time_t)seconds;
    clock.it_value.tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6);
    if (seconds > 0 && !clock.it_value.tv_sec && !clock.it_value.tv_usec)
        clock.it_value.tv_usec = 1;
    setitimer(ITIMER_REAL, &clock, NULL);
}

void cli_interrupt_start(double timeout_seconds)
{
    struct sigaction action = {.sa_handler = on_time, .sa_flags = SA_RESTART};
    timeout = timeout_seconds;
    if (!(timeout > 0))
        return;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    set_clock(timeout);
}

void cli_interrupt_watch(dq_session *session)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    atomic_store(&watched, session);
    sigaction(SIGINT, NULL, &before);
    catches = before.sa_handler != SIG_IGN;
    if (catches)
        sigaction(SIGINT, &action, NULL);
}

dq_status cli_interrupt_end(dq_status status, dq_error *err)
{
    if (catches)
        sigaction(SIGINT, &before, NULL);
    catches = false;
    if (timeout > 0)
        set_clock(0);
    atomic_store(&watched, NULL);
    if (status != DQ_OK && status != DQ_CANCELLED)
        return status;
    if (interrupted)
        return io_fail(err, DQ_CANCELLED, "interrupted");
    if (out_of_time)
        return io_fail(err, DQ_CANCELLED, "the time of --timeout is up");
    return status;
}

int cli_interrupt_exit_code(dq_status status)
{
    return status == DQ_CANCELLED && !interrupted ? CLI_EXIT_TIMEOUT : (int)status;
}

# SPDX-License-Identifier: Apache-2.0
"""Worker processes that compute blocks. A worker that is killed loses one block, which another one computes.

The workers are forked from one process, which loads the model and packs its weights: they share that memory."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.reduction
import multiprocessing.resource_tracker
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._files import Block

MAX_DEATHS_PER_BLOCK = 3
"""Workers that may die of one block before the run gives up."""

_spawn = multiprocessing.get_context("spawn")
Compute = Callable[[Block], dict[str, Any]]


class WorkerDied(RuntimeError):
    """Worker processes ended without an answer, most often as the system was out of memory."""


def _exit_with_parent() -> None:
    """Ends the worker at once when the driver is gone, even while it computes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _work(pipe: Any, setup: Callable[..., Compute], arguments: tuple[Any, ...]) -> None:
    """A worker: answers each block with ``(record, None)`` or ``(None, exception)``."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        compute = setup(*arguments)
        pipe.send((None, None))
    except Exception as why:
        pipe.send((None, _sendable(why)))
        return
    while True:
        try:
            block = pipe.recv()
        except EOFError:
            return
        try:
            answer: tuple[Any, Any] = compute(block), None
        except Exception as why:
            answer = None, _sendable(why)
        pipe.send(answer)


def _fork_workers(requests: Any, load: Callable[..., None], setup: Callable[..., Compute], arguments: tuple[Any, ...]) -> None:
    """The parent of the workers serves two requests. None and the descriptor of a pipe: forks a worker and answers with its process
    number. The number of a process that was killed or has ended: answers with its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the driver, which ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        load(*arguments)
        requests.send(None)
    except Exception as why:
        requests.send(_sendable(why))
        return
    while True:
        try:
            number = requests.recv()
        except EOFError:
            return
        if number is not None:
            requests.send(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
            continue
        pipe = multiprocessing.connection.Connection(multiprocessing.reduction.recv_handle(requests))
        number = os.fork()
        if number == 0:
            requests.close()
            try:
                _work(pipe, setup, arguments)
            finally:
                os._exit(0)
        pipe.close()
        requests.send(number)


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C takes effect at the end. A blocked signal is not enough: another thread may receive it, such as one of pyarrow's, and
    Python then interrupts the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        if received:
            signal.raise_signal(signal.SIGINT)


class _Parent:
    """The process that loads the model and forks the workers."""

    def __init__(self, load: Callable[..., None], setup: Callable[..., Compute], arguments: tuple[Any, ...]) -> None:
        self._requests, theirs = _spawn.Pipe()
        self._process = _spawn.Process(target=_fork_workers, args=(theirs, load, setup, arguments), daemon=True)
        with _interrupts_wait():
            multiprocessing.resource_tracker.ensure_running()  # start() would do it, and it unblocks SIGINT
            # The child begins with SIGINT blocked, so that Ctrl-C does not interrupt its start.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._process.start()
            finally:
                theirs.close()
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def wait_until_loaded(self) -> None:
        """Raises what `load` raised."""
        error = self._answer()
        if error is not None:
            raise error

    def fork(self, pipe: Any) -> int:
        """The number of a new worker, which answers at `pipe`."""
        self._send(None)
        with contextlib.suppress(OSError):  # as in _send
            multiprocessing.reduction.send_handle(self._requests, pipe.fileno(), self._process.pid)
        return int(self._answer())

    def exit_code(self, number: int) -> int:
        """Waits for the end of a worker."""
        self._send(number)
        return int(self._answer())

    def _send(self, request: int | None) -> None:
        with contextlib.suppress(OSError):  # the read of the answer tells
            self._requests.send(request)

    def _answer(self) -> Any:
        try:
            return self._requests.recv()
        except (EOFError, OSError):
            self._process.join(5)
            raise WorkerDied(f"the process that loads the model ended, exit code {self._process.exitcode}. A script that calls "
                             "run_parquet needs `if __name__ == \"__main__\":` around the call, as processes import the script") from None

    def end(self) -> None:
        self._requests.close()
        self._process.kill()
        self._process.join()


class _Worker:
    """A process, its pipe, and the block that it computes."""

    def __init__(self, parent: _Parent) -> None:
        self._parent = parent
        self.pipe, theirs = _spawn.Pipe()
        with theirs:
            self._number = parent.fork(theirs)
        self.ready, self.block = False, None

    ready: bool
    block: Block | None

    def end(self) -> int:
        """Ends the process and returns its exit code."""
        with contextlib.suppress(ProcessLookupError):  # its parent is gone, and so is it
            os.kill(self._number, signal.SIGKILL)
        self.pipe.close()
        return self._parent.exit_code(self._number)


def compute_all(blocks: Iterable[Block], workers: int, load: Callable[..., None], setup: Callable[..., Compute],
                arguments: tuple[Any, ...]) -> Iterator[tuple[Block, dict[str, Any] | BaseException]]:
    """Gives each block with its record, or with what it raised, in the order in which they finish.

    The parent of the workers calls ``load(*arguments)``, which starts no thread. Each of the `workers` processes calls
    ``setup(*arguments)`` once and the function that it returns for its blocks. Closing the iterator ends the processes.

    Raises:
        WorkerDied: the parent ended, a worker ended before it was ready, or MAX_DEATHS_PER_BLOCK workers ended with the same block.
        Exception: what `load` or `setup` raised.
    """
    waiting = collections.deque(blocks)
    deaths: collections.Counter[int] = collections.Counter()
    crew: list[_Worker] = []
    if not waiting:
        return
    parent = _Parent(load, setup, arguments)
    try:
        parent.wait_until_loaded()
        while waiting or any(worker.block for worker in crew):
            while len(crew) < min(workers, len(waiting) + sum(worker.block is not None for worker in crew)):
                crew.append(_Worker(parent))
            for worker in crew:
                if worker.ready and worker.block is None and waiting:
                    worker.block = waiting.popleft()
                    with contextlib.suppress(OSError):  # a dead worker's pipe: the read below tells
                        worker.pipe.send(worker.block)
            for pipe in multiprocessing.connection.wait([worker.pipe for worker in crew]):
                worker = next(worker for worker in crew if worker.pipe is pipe)
                block = worker.block
                try:
                    record, error = worker.pipe.recv()
                except (EOFError, OSError):
                    crew.remove(worker)
                    _bury(worker, deaths)
                    if block is not None:
                        waiting.appendleft(block)
                    continue
                worker.block = None
                if block is not None:
                    yield block, record if error is None else error
                elif error is not None:
                    raise error
                worker.ready = True
    finally:
        with contextlib.suppress(WorkerDied):  # the workers end with the driver then
            for worker in crew:
                worker.end()
        parent.end()


def _bury(worker: _Worker, deaths: collections.Counter[int]) -> None:
    """Counts the death of a worker; raises WorkerDied if another one would fare no better."""
    code = worker.end()
    if not worker.ready:
        raise WorkerDied(f"a worker ended before it was ready, exit code {code}")
    if worker.block is not None:
        deaths[worker.block.index] += 1
        if deaths[worker.block.index] >= MAX_DEATHS_PER_BLOCK:
            raise WorkerDied(f"{MAX_DEATHS_PER_BLOCK} workers ended at {worker.block.path}, row group {worker.block.row_group}, the "
                             f"last with exit code {code}: the system may be out of memory; fewer workers need less")

# SPDX-License-Identifier: Apache-2.0
"""Worker processes that compute blocks. A worker that is killed loses one block, which another one computes."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the driver, which ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
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


class _Worker:
    """A process, its pipe, and the block that it computes."""

    def __init__(self, setup: Callable[..., Compute], arguments: tuple[Any, ...]) -> None:
        self.pipe, theirs = _spawn.Pipe()
        self.process = _spawn.Process(target=_work, args=(theirs, setup, arguments), daemon=True)
        # The child begins with SIGINT blocked, so that Ctrl-C does not interrupt its start.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.ready, self.block = False, None

    ready: bool
    block: Block | None

    def end(self) -> None:
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def compute_all(blocks: Iterable[Block], workers: int, setup: Callable[..., Compute],
                arguments: tuple[Any, ...]) -> Iterator[tuple[Block, dict[str, Any] | BaseException]]:
    """Gives each block with its record, or with what it raised, in the order in which they finish.

    Each of the `workers` processes calls ``setup(*arguments)`` once and the function that it returns for its blocks. Closing the
    iterator ends the processes.

    Raises:
        WorkerDied: a worker ended before it was ready, or MAX_DEATHS_PER_BLOCK workers ended with the same block.
        Exception: what `setup` raised.
    """
    waiting = collections.deque(blocks)
    deaths: collections.Counter[int] = collections.Counter()
    crew: list[_Worker] = []
    try:
        while waiting or any(worker.block for worker in crew):
            while len(crew) < min(workers, len(waiting) + sum(worker.block is not None for worker in crew)):
                crew.append(_Worker(setup, arguments))
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
        for worker in crew:
            worker.end()


def _bury(worker: _Worker, deaths: collections.Counter[int]) -> None:
    """Counts the death of a worker; raises WorkerDied if another one would fare no better."""
    worker.end()
    code = worker.process.exitcode
    if not worker.ready:
        raise WorkerDied(f"a worker ended before it was ready, exit code {code}. A script that calls run_parquet needs "
                         "`if __name__ == \"__main__\":` around the call, as workers import the script")
    if worker.block is not None:
        deaths[worker.block.index] += 1
        if deaths[worker.block.index] >= MAX_DEATHS_PER_BLOCK:
            raise WorkerDied(f"{MAX_DEATHS_PER_BLOCK} workers ended at {worker.block.path}, row group {worker.block.row_group}, the "
                             f"last with exit code {code}: the system may be out of memory; fewer workers need less")

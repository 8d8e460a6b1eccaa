# SPDX-License-Identifier: Apache-2.0
"""dqrun.batch.run_parquet: the same results however the work is cut, processes that are killed, resuming, rows that fail, full disks."""

import hashlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import dqrun
from conftest import EXAMPLES, add_models
from dqrun.batch import WorkerDied, _pool, run_parquet
from dqrun.batch._files import Block
from test_predictor import gather

DIGITS = EXAMPLES / "digits_qdq.onnx"


def table_of(images):
    return pa.table({"id": np.arange(len(images)), "image": pa.FixedShapeTensorArray.from_numpy_ndarray(images)})


def write_files(folder, images, files):
    table = table_of(images)
    rows = len(images) // files
    for i in range(files):
        pq.write_table(table.slice(rows * i, rows), folder / f"{i:02}.parquet")


def results(target):
    """The table of results in the order of the file names."""
    return pa.dataset.dataset(target).to_table()


def digest(table):
    """SHA-256 of ids and scores."""
    column = table["scores"].combine_chunks()
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    return hashlib.sha256(table["id"].to_numpy().tobytes() + column.to_numpy_ndarray().tobytes()).hexdigest()


def failures(target):
    """Messages by id."""
    tables = [pq.read_table(path) for path in sorted((target / "_errors").glob("*.parquet"))]
    assert all(table.schema.names == ["id", "message"] for table in tables)
    return {row["id"]: row["message"] for table in tables for row in table.to_pylist()}


def leftovers(target):
    return [path for path in target.rglob("*") if path.name.endswith(".tmp")]


def expected_digest(images):
    scores = dqrun.Session(DIGITS)(image=images)
    return hashlib.sha256(np.arange(len(images)).tobytes() + scores.tobytes()).hexdigest()


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("batch_size", [1, 64, 450])
def test_same_results_however_the_work_is_cut(tmp_path, digits, parts, batch_size):
    table = table_of(digits)
    (tmp_path / "in").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(450), parts)):
        pq.write_table(table.slice(rows[0], len(rows)), tmp_path / "in" / f"{i}.parquet", row_group_size=200)
    done = run_parquet(DIGITS, tmp_path / "in", tmp_path / "out", id_column="id", workers=1 + parts % 2, batch_size=batch_size)
    assert (done.rows, done.failed_rows, done.resumed_rows) == (450, 0, 0)
    assert digest(results(tmp_path / "out")) == expected_digest(digits)


# ---- Killed, interrupted, resumed ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory, digits):
    """A file of 60 row groups, which take a second or more with batches of 1, and its images."""
    images = np.tile(digits, (20, 1, 1, 1))
    path = tmp_path_factory.mktemp("many") / "in.parquet"
    pq.write_table(table_of(images), path, row_group_size=150)
    return path, images


def start(source, target, *more, **options):
    return subprocess.Popen([sys.executable, "-m", "dqrun.batch", DIGITS, source, target, "--id", "id", "--workers", "2", "--batch-size", "1",
                             *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options)


def children_of(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def workers_of(pid):
    """The worker processes of a driver: they are forked from the child that loads the model."""
    return [worker for child in children_of(pid) for worker in children_of(child)]


def wait_for_records(target, count, process):
    until = time.monotonic() + 30
    while len(list((target / "_done").glob("*.json"))) < count:
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.005)


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_killed_worker_and_killed_driver(tmp_path, many):
    source, images = many
    target = tmp_path / "out"
    process = start(source, target)
    wait_for_records(target, 3, process)
    victim = workers_of(process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_for_records(target, len(list((target / "_done").glob("*.json"))) + 5, process)
    orphans = workers_of(process.pid)
    assert victim not in orphans and len(orphans) == 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until = time.monotonic() + 10
    while any(map(is_running, orphans)):
        assert time.monotonic() < until, "workers outlive the driver"
        time.sleep(0.01)
    before = len(list((target / "_done").glob("*.json")))
    assert 8 <= before < 60
    (target / ".part-000059.parquet.1.tmp").write_bytes(b"half")
    done = run_parquet(DIGITS, source, target, id_column="id", workers=2, batch_size=1)
    assert done.resumed_rows == 150 * before and done.rows == 9000
    assert digest(results(target)) == expected_digest(images)
    assert not leftovers(target)


def test_killed_parent_of_the_workers(tmp_path, many):
    """The process that loads the model is killed, then a worker, so that another one is asked for: the run ends with a message."""
    source, images = many
    target = tmp_path / "out"
    process = start(source, target)
    wait_for_records(target, 3, process)
    parent = next(child for child in children_of(process.pid) if children_of(child))
    worker = children_of(parent)[0]
    os.kill(parent, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1 and out == ""
    assert err.startswith("dqrun.batch: the process that loads the model ended, exit code -9") and err.count("\n") == 1, err
    assert not leftovers(target)
    assert digest_after_resume(source, target) == expected_digest(images)


def test_ctrl_c(tmp_path, many):
    source, images = many
    target = tmp_path / "out"
    process = start(source, target)
    wait_for_records(target, 3, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: driver and workers
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and out == "" and err == "interrupted; the same command goes on from here\n"
    assert not leftovers(target)
    for path in target.glob("part-*.parquet"):
        assert pq.read_table(path).num_rows == 150
    assert digest_after_resume(source, target) == expected_digest(images)


def test_ctrl_c_at_the_start(tmp_path, many):
    for delay in (0.6, 0.9):  # while workers start
        process = start(many[0], tmp_path / "out")
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode != 0 and "spawn_main" not in err and not leftovers(tmp_path)


def digest_after_resume(source, target):
    done = run_parquet(DIGITS, source, target, id_column="id", workers=2, batch_size=1)
    assert 0 < done.resumed_rows < done.rows
    return digest(results(target))


def test_full_disk(tmp_path):
    """A limit on the size of files stands for a full disk: a write fails in the same way, with another errno."""
    target = tmp_path / "out"
    images = np.random.default_rng(1).random((3100, 1, 8, 8)).astype(np.float32)
    big = tmp_path / "big.parquet"
    with pq.ParquetWriter(big, table_of(images).schema) as writer:
        writer.write_table(table_of(images)[:100])
        writer.write_table(table_of(images)[100:])
    size = 20 * 1024
    run_parquet(DIGITS, big, target, id_column="id")
    assert (target / "part-000000.parquet").stat().st_size < size < (target / "part-000001.parquet").stat().st_size
    shutil.rmtree(target)
    code = ("import resource, signal, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (%d, -1)); "
            "from dqrun.batch.__main__ import main; sys.exit(main())" % size)
    script = tmp_path / "limited.py"
    script.write_text(f"if __name__ == '__main__':\n    {code}\n")
    done = subprocess.run([sys.executable, script, DIGITS, big, target, "--id", "id"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"dqrun.batch: no space left to write to {target}: free some and run again, finished files are kept\n"
    assert not leftovers(target) and [path.name for path in target.glob("*.parquet")] == ["part-000000.parquet"]
    again = run_parquet(DIGITS, big, target, id_column="id")
    assert again.resumed_rows == 100 and digest(results(target)) == expected_digest(images)


def test_files_that_were_cut_or_removed_are_computed_anew(tmp_path, many):
    source, images = many
    target = tmp_path / "out"
    run_parquet(DIGITS, source, target, id_column="id", workers=2)
    (target / "part-000003.parquet").write_bytes((target / "part-000003.parquet").read_bytes()[:100])
    (target / "part-000005.parquet").unlink()
    done = run_parquet(DIGITS, source, target, id_column="id")
    assert done.resumed_rows == 9000 - 300
    assert digest(results(target)) == expected_digest(images)


def test_the_model_is_loaded_once(tmp_path, many):
    source, images = many
    model = tmp_path / "model.onnx"
    shutil.copy(DIGITS, model)
    seen = []

    def progress(state):
        seen.append(state.rows)
        model.unlink(missing_ok=True)  # a worker that loaded it again would fail

    run_parquet(model, source, tmp_path / "out", id_column="id", progress=progress)
    assert seen == list(range(150, 9001, 150))
    assert digest(results(tmp_path / "out")) == expected_digest(images)


def dies(folder, how):
    def compute(block):
        if block.index == 1 and (how == "always" or not (folder / "once").exists()):
            (folder / "once").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"index": block.index}
    if how == "setup":
        os._exit(7)
    return compute


def loads_nothing(folder, how):
    if how == "load":
        os._exit(8)


def test_workers_that_die(tmp_path):
    blocks = [Block(i, "file", i, 1) for i in range(4)]
    answers = dict((block.index, record) for block, record in _pool.compute_all(blocks, 2, loads_nothing, dies, (tmp_path, "once")))
    assert answers == {i: {"index": i} for i in range(4)}
    with pytest.raises(WorkerDied, match="3 workers ended at file, row group 1, the last with exit code -9"):
        list(_pool.compute_all(blocks, 2, loads_nothing, dies, (tmp_path, "always")))
    with pytest.raises(WorkerDied, match="before it was ready, exit code 7"):
        list(_pool.compute_all(blocks, 2, loads_nothing, dies, (tmp_path, "setup")))
    with pytest.raises(WorkerDied, match="the process that loads the model ended, exit code 8"):
        list(_pool.compute_all(blocks, 2, loads_nothing, dies, (tmp_path, "load")))


# ---- Refusals ------------------------------------------------------------------------------------------------------


def test_resuming_something_else_is_refused(tmp_path, digits):
    source, target, other = tmp_path / "in.parquet", tmp_path / "out", tmp_path / "other.parquet"
    pq.write_table(table_of(digits), source)
    pq.write_table(table_of(np.ascontiguousarray(digits[::-1])), other)
    model = tmp_path / "model.onnx"
    shutil.copy(DIGITS, model)
    run_parquet(model, source, target, id_column="id")
    before = (target / "part-000000.parquet").read_bytes()

    def refused(message, model=model, source=source, **options):
        with pytest.raises(dqrun.InvalidArgument, match=message):
            run_parquet(model, source, target, **{"id_column": "id", **options})

    refused("the SHA-256 of the model is [0-9a-f]{64}, it was [0-9a-f]{64}", model=EXAMPLES / "digits_qoperator.onnx")
    refused("input 1 .* is .*, it was ", source=other)
    refused("input: 2 files, there were 1", source=[source, other])
    refused("options batch_size is 7, it was 256", batch_size=7)
    refused("options outputs scores is s, it was scores", outputs={"scores": "s"})
    refused("has results already", resume=False)
    shutil.copy(other, source)
    refused("input 1 .* is .*, it was ")
    (target / "_manifest.json").write_text(json.dumps({**json.loads((target / "_manifest.json").read_text()), "dqrun": "0.0.1"}))
    refused("the version of dqrun is .*, it was 0.0.1")
    (target / "_manifest.json").write_text("{")
    refused("_manifest.json cannot be read")
    assert (target / "part-000000.parquet").read_bytes() == before


def test_messages(tmp_path, digits):
    source = tmp_path / "in.parquet"
    pq.write_table(table_of(digits), source)

    def refused(kind, message, source=source, target=tmp_path / "out", **options):
        with pytest.raises(kind, match=message):
            run_parquet(DIGITS, source, target, **{"id_column": "id", **options})
        assert not (tmp_path / "out").exists()

    refused(dqrun.BadInput, "in.parquet has no column 'key': it has id, image", id_column="key")
    refused(dqrun.BadInput, "in.parquet has no column 'pixels'", inputs={"image": "pixels"})
    refused(dqrun.BadInput, "in.parquet: column 'id' has dtype int64, input 'image' expects float32", inputs={"image": "id"})
    refused(dqrun.InvalidArgument, "two columns 'id'", outputs={"scores": "id"})
    refused(dqrun.InvalidArgument, "workers is 0, expected 1 or more", workers=0)
    refused(dqrun.InvalidArgument, "id_column is 'message'", id_column="message")
    refused(FileNotFoundError, "there is no file", source=tmp_path / "none.parquet")
    refused(dqrun.InvalidArgument, "is both the source and the target", source=tmp_path, target=tmp_path)
    (tmp_path / "empty").mkdir()
    refused(dqrun.InvalidArgument, "empty has no .parquet file", source=tmp_path / "empty")
    pq.write_table(pa.table({"id": [1], "image": [[1.0] * 64]}), tmp_path / "double.parquet")
    refused(dqrun.BadInput, "double.parquet: column 'image' has dtype float64", source=[source, tmp_path / "double.parquet"])
    small = pa.table({"id": [1], "image": pa.FixedShapeTensorArray.from_numpy_ndarray(digits[:1, :, :4])})
    pq.write_table(small, tmp_path / "small.parquet")
    refused(dqrun.BadInput, r"small.parquet: column 'image' has rows of shape \(1, 4, 8\)", source=tmp_path / "small.parquet")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    refused(dqrun.InvalidArgument, "has no manifest and is not empty: it has thesis.txt", target=tmp_path / "other")


def test_two_drivers_at_once(tmp_path, many):
    process = start(many[0], tmp_path / "out")
    wait_for_records(tmp_path / "out", 1, process)
    with pytest.raises(dqrun.InvalidArgument, match="another process writes to this folder"):
        run_parquet(DIGITS, many[0], tmp_path / "out", id_column="id", batch_size=1)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()


# ---- Rows that fail, and no rows -----------------------------------------------------------------------------------


def test_rows_that_fail(tmp_path):
    x = [[i % 10, 1] for i in range(50)]
    x[3], x[4], x[17], x[49] = [99, 0], None, [1], [None, 2]
    pq.write_table(pa.table({"id": [f"row {i}" for i in range(50)], "x": pa.array(x, pa.list_(pa.int64()))}), tmp_path / "in.parquet",
                   row_group_size=20)
    digests = set()
    for batch_size, workers in ((1, 1), (7, 2), (64, 1)):
        target = tmp_path / f"out{batch_size}"
        done = run_parquet(gather(), tmp_path / "in.parquet", target, id_column="id", batch_size=batch_size, workers=workers)
        assert (done.rows, done.failed_rows) == (50, 4)
        found = results(target)
        assert found["id"].to_pylist() == [f"row {i}" for i in range(50) if i not in (3, 4, 17, 49)]
        assert found["y"].to_pylist() == [[i % 10 * 2, 2] for i in range(50) if i not in (3, 4, 17, 49)]
        messages = failures(target)
        assert list(messages) == ["row 3", "row 4", "row 17", "row 49"] and "99" in messages["row 3"]
        assert [messages[row] for row in ("row 4", "row 17", "row 49")] == [
            "column 'x': the value is null", "column 'x': the shape is (1), expected (2)", "column 'x': an element is null"]
        digests.add(str(found.to_pydict()) + str(messages))
    assert len(digests) == 1


def test_blocks_where_all_rows_fail(tmp_path):
    pq.write_table(pa.table({"id": range(4), "x": pa.array([None, None, [1, 2], [3, 4]], pa.list_(pa.float32()))}),
                   tmp_path / "in.parquet", row_group_size=2)
    for columns, files in ((2, 2), ("M", 1)):  # of rows of unknown length nothing can be written
        target = tmp_path / f"out{columns}"
        run_parquet(add_models(("N", columns)).SerializeToString(), tmp_path / "in.parquet", target, id_column="id")
        assert len(list(target.glob("*.parquet"))) == files
        assert results(target)["id"].to_pylist() == [2, 3] and list(failures(target)) == [0, 1]
        again = run_parquet(add_models(("N", columns)).SerializeToString(), tmp_path / "in.parquet", target, id_column="id")
        assert again.resumed_rows == 4


def test_results_of_different_shapes_are_refused(tmp_path):
    pq.write_table(pa.table({"id": range(2), "x": pa.array([[1], [3, 4]], pa.list_(pa.float32()))}), tmp_path / "in.parquet",
                   row_group_size=1)
    with pytest.raises(dqrun.BadInput, match="the results have the columns"):
        run_parquet(add_models(("N", "M")).SerializeToString(), tmp_path / "in.parquet", tmp_path / "out", id_column="id")


def test_no_rows(tmp_path, digits):
    for name, options in (("groups", {}), ("none", {"row_group_size": 1})):
        pq.write_table(table_of(digits)[:0], tmp_path / f"{name}.parquet", **options)
        target = tmp_path / name
        done = run_parquet(DIGITS, tmp_path / f"{name}.parquet", target, id_column="id")
        assert done.rows == 0 and results(target).num_rows == 0
        assert results(target).schema.field("scores").type.shape == [10]
        assert run_parquet(DIGITS, tmp_path / f"{name}.parquet", target, id_column="id").rows == 0


def test_fixed_batch_dimension(tmp_path):
    x = np.random.default_rng(1).standard_normal((23, 4)).astype(np.float32)
    pq.write_table(pa.table({"id": range(23), "x": pa.FixedShapeTensorArray.from_numpy_ndarray(x)}), tmp_path / "in.parquet",
                   row_group_size=10)
    run_parquet(add_models((4, 4)).SerializeToString(), tmp_path / "in.parquet", tmp_path / "out", id_column="id", batch_size=6)
    found = results(tmp_path / "out")["y"]
    np.testing.assert_array_equal(np.concatenate([chunk.to_numpy_ndarray() for chunk in found.chunks]), x + x)


# ---- The command ---------------------------------------------------------------------------------------------------


def test_command(tmp_path, digits):
    pq.write_table(table_of(digits), tmp_path / "in.parquet")

    def command(*words):
        done = subprocess.run([sys.executable, "-m", "dqrun.batch", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, cwd=tmp_path, check=False)
        return done.returncode, done.stdout, done.stderr

    run = (DIGITS, "in.parquet", "out", "--id", "id")
    assert command(*run, "--input", "image=image", "--output", "scores=logits") == (0, "450 rows\n", "")
    assert results(tmp_path / "out").schema.names == ["id", "logits"]
    assert command(*run, "--output", "scores=logits") == (0, "450 rows, 450 of them by earlier runs\n", "")
    assert command(*run, "--output", "scores=logits", "--quiet") == (0, "", "")
    code, out, err = command(*run, "--output", "scores=logits", "--no-resume")
    assert (code, out) == (1, "") and err.startswith("dqrun.batch: out has results already")
    assert command("none.onnx", "in.parquet", "out", "--id", "id")[0] == 1
    assert command("in.parquet", "out", "--id", "id")[0] == 2


def test_progress_on_a_terminal(tmp_path, digits):
    pq.write_table(table_of(digits), tmp_path / "in.parquet")
    ours, theirs = pty.openpty()
    process = subprocess.run([sys.executable, "-m", "dqrun.batch", DIGITS, tmp_path / "in.parquet", tmp_path / "out", "--id", "id"],
                             stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 10000).decode()
    assert "\r450 of 450 rows, " in shown and " rows/s" in shown
    assert process.stdout == b"450 rows\n"

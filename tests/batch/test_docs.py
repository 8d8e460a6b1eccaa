# SPDX-License-Identifier: Apache-2.0
"""docs/batch.md: its commands print what it shows, and its Python sessions run."""

import doctest
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from conftest import EXAMPLES, ROOT

PAGE = ROOT / "docs" / "batch.md"


def test_page(tmp_path, monkeypatch, digits):
    images = digits.reshape(450, 64).tolist()
    images[7], images[300] = None, [1.0]
    pq.write_table(pa.table({"id": np.arange(450), "image": pa.array(images, pa.list_(pa.float32()))}), tmp_path / "in.parquet")
    shutil.copy(EXAMPLES / "digits_qdq.onnx", tmp_path / "digits.onnx")
    monkeypatch.chdir(tmp_path)
    commands, parser, runner, names = 0, doctest.DocTestParser(), doctest.DocTestRunner(), {}
    for language, text in re.findall(r"^```(console|python)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if language == "python":
            test = parser.get_doctest(text, names, "batch.md", str(PAGE), 0)
            runner.run(test, clear_globs=False)
            names = test.globs
            continue
        for command, expected in re.findall(r"^\$ python (.*)\n((?:[^$].*\n)*)", text, re.MULTILINE):
            done = subprocess.run([sys.executable, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert done.stdout == expected
            commands += 1
    assert commands == 3 and runner.tries >= 7 and not runner.failures
    assert pathlib.Path("out/_errors").is_dir()

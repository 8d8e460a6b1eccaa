#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/export_schemas.py: what it writes reads back, and a refresh keeps people's texts.

The last line is "N passed, N failed, N skipped".
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "export_schemas.py"
sys.path.insert(0, str(TOOL.parent))
sys.dont_write_bytecode = True
import export_schemas  # noqa: E402


def run(*arguments):
    return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], capture_output=True, text=True)


class Export(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def docs(self, name):
        return list(yaml.safe_load_all((self.folder / name).read_text(encoding="utf-8")))

    def test_a_refresh_changes_nothing_that_is_up_to_date(self):
        shutil.copytree(ROOT / "schemas", self.folder, dirs_exist_ok=True)
        self.assertEqual(run("--dir", self.folder).returncode, 0)
        for path in sorted(self.folder.rglob("*.yaml")):
            committed = ROOT / "schemas" / path.relative_to(self.folder)
            self.assertEqual(path.read_text(), committed.read_text(), path.name)

    def test_a_new_file_has_placeholders_for_texts(self):
        self.assertEqual(run("--dir", self.folder, "QuantizeLinear").returncode, 0)
        docs = self.docs("QuantizeLinear.yaml")
        self.assertEqual([d["since_version"] for d in docs[:3]], [10, 13, 19])
        self.assertEqual(docs[0]["doc"], "(undescribed)")
        self.assertEqual(docs[0]["inputs"][2]["description"], "(undescribed) y_zero_point")

    def test_texts_are_kept_and_go_on_to_newer_versions(self):
        run("--dir", self.folder, "QuantizeLinear")
        path = self.folder / "QuantizeLinear.yaml"
        text = "First line: with 'quotes', [signs] and " + "long " * 40 + "words"
        docs = path.read_text().split("---\n")
        docs[1] = docs[1].replace("description: (undescribed) axis", "description: \"" + text + '"')
        path.write_text("---\n".join(docs))
        self.assertEqual(run("--dir", self.folder).returncode, 0)
        axis = [d["attributes"][0] for d in self.docs(path.name)[1:]]
        self.assertEqual({row["name"] for row in axis}, {"axis"})
        self.assertEqual({row["description"] for row in axis}, {text})
        run("--dir", self.folder, "--fresh", "QuantizeLinear")
        self.assertEqual(self.docs(path.name)[1]["attributes"][0]["description"], "(undescribed) axis")

    def test_an_operator_of_another_domain_gets_a_folder(self):
        self.assertEqual(run("--dir", self.folder, "ai.onnx.ml:ZipMap").returncode, 0)
        docs = self.docs("ai.onnx.ml/ZipMap.yaml")
        self.assertEqual(docs[0]["domain"], "ai.onnx.ml")
        self.assertEqual(
            sorted(docs[0]["type_constraints"][0]["allowed_type_strs"]),
            ["seq(map(int64, float))", "seq(map(string, float))"],
        )

    def test_an_unknown_operator_is_refused(self):
        done = run("--dir", self.folder, "Quantise")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no operator 'Quantise' in domain 'ai.onnx'", done.stderr)

    def test_floats_read_back_as_the_same_bits(self):
        for value in (0.0, -0.0, 1.0, 0.1, 1e-5, 16777216.0, 3.4028235e38, 1.1754944e-38, 1e-45, -0.25):
            text = export_schemas.float_text(value)
            back = yaml.safe_load(text)
            self.assertIsInstance(back, float, text)
            self.assertEqual(numpy.float32(back).tobytes(), numpy.float32(value).tobytes(), text)
        for value, text in ((float("inf"), ".inf"), (float("-inf"), "-.inf"), (float("nan"), ".nan")):
            self.assertEqual(export_schemas.float_text(value), text)

    def test_texts_that_yaml_would_read_as_something_else_are_quoted(self):
        for text in ("", "no", "1", "1.5", "null", "~", "a: b", "# c", "- d", "it's", "{e}", "tensor(float)", "é"):
            self.assertEqual(yaml.safe_load(export_schemas.quoted(text)), text)


def main():
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromTestCase(Export))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

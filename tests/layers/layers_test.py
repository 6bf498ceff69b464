#!/usr/bin/env python3
"""Verifies that the layer check finds planted violations, each alone in a small tree, and passes a tree without any."""
import pathlib
import subprocess
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools/checks/layers"

CLEAN = {
    "src/layers.cmake": "# onced_layer(ghost src/ghost/ghost.cpp)\n"
    "onced_layer(low\n  src/low/low.cpp)\nonced_layer(high\n  src/high/high.cpp)\n",
    "include/onced/public.hpp": '#include <string>\n\n#include "onced/other.hpp"\n',
    "include/onced/other.hpp": "#pragma once\n",
    "src/low/low.hpp": '#include "onced/public.hpp"\n',
    "src/low/low.cpp": '#include "low/low.hpp"\n// #include "high/high.hpp"\n',
    "src/high/high.hpp": '#include "low/low.hpp"\n',
    "src/high/high.cpp": '#include "high/high.hpp"\n',
    "tools/command.cpp": '#include "command.hpp"\n#include "onced/public.hpp"\n',
    "tools/command.hpp": "#pragma once\n",
    "bench/bench.cpp": '#include "high/high.hpp"\n#include <zmq.hpp>\n',
}


def check(changes):
    """Runs the check on the clean tree with some files replaced or added: its exit status and the lines it printed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        run = subprocess.run([CHECK, folder], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        return run.returncode, run.stdout.splitlines()


class TheLayerCheck(unittest.TestCase):
    def assert_one_violation(self, changes, *words):
        status, lines = check(changes)
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), 1, lines)
        for word in words:
            self.assertIn(word, lines[0])

    def test_passes_a_tree_in_order(self):
        self.assertEqual(check({}), (0, []))

    def test_finds_an_include_of_a_higher_layer(self):
        self.assert_one_violation({"src/low/low.hpp": '#include "high/high.hpp"\n'}, "src/low/low.hpp", "above")

    def test_finds_an_include_with_spaces_and_in_angle_brackets(self):
        self.assert_one_violation({"src/low/low.hpp": '  #  include   "high/high.hpp"\n'}, "src/low/low.hpp", "above")
        self.assert_one_violation({"src/low/low.hpp": "#include <high/high.hpp>\n"}, "src/low/low.hpp", "is ours")

    def test_finds_an_include_that_names_no_layer(self):
        for include in ("low.hpp", "../high/high.hpp", "tools/command.hpp"):
            self.assert_one_violation({"src/low/low.cpp": f'#include "{include}"\n'}, "src/low/low.cpp", include)

    def test_finds_components_that_include_one_another_in_a_circle(self):
        status, lines = check(
            {
                "src/low/low.cpp": '#include "low/other.hpp"\n',
                "src/low/other.hpp": '#include "low/third.hpp"\n',
                "src/low/third.hpp": '#include "low/low.hpp"\n',
            }
        )
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), 3, lines)
        for name, line in zip(("low/low", "low/other", "low/third"), lines):
            self.assertIn(f"{name} includes, and is included by,", line)

    def test_a_layer_may_lie_beside_the_library(self):
        listed = {"src/layers.cmake": CLEAN["src/layers.cmake"] + "onced_layer(rehearsal\n  rehearsal/play.cpp)\n"}
        play = {**listed, "rehearsal/play.cpp": '#include "high/high.hpp"\n'}
        self.assertEqual(check(play), (0, []))
        self.assert_one_violation({**play, "src/low/low.cpp": '#include "rehearsal/play.hpp"\n'}, "src/low/low.cpp", "above")

    def test_finds_a_public_header_that_reaches_into_a_layer(self):
        self.assert_one_violation(
            {"include/onced/public.hpp": '#include "low/low.hpp"\n'}, "include/onced/public.hpp", "low/low.hpp"
        )

    def test_finds_a_folder_that_is_no_layer(self):
        self.assert_one_violation({"src/ghost/ghost.hpp": "#pragma once\n"}, "src/ghost/ghost.hpp", "no layer")

    def test_finds_the_command_reaching_into_a_layer(self):
        self.assert_one_violation({"tools/command.hpp": '#include "low/low.hpp"\n'}, "tools/command.hpp", "low/low.hpp")

    def test_finds_a_source_that_nothing_builds(self):
        self.assert_one_violation({"src/low/forgotten.cpp": "\n"}, "src/low/forgotten.cpp", "not listed")

    def test_finds_a_source_under_another_layer(self):
        changes = {"src/layers.cmake": "onced_layer(low src/low/low.cpp src/high/high.cpp)\nonced_layer(high)\n"}
        self.assert_one_violation(changes, "src/high/high.cpp", "under the layer low")

    def test_finds_that_there_are_no_layers(self):
        status, lines = check({"src/layers.cmake": "\n"})
        self.assertEqual(status, 1)
        self.assertIn("src/layers.cmake: lists no layers", lines)


if __name__ == "__main__":
    unittest.main()

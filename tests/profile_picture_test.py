#!/usr/bin/env python3
"""scripts/profiling: from what perf tells to stacks, and from stacks to pictures. Runs nothing that was built."""
import io
import pathlib
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "profiling"))

import headline  # noqa: E402
import names  # noqa: E402
import picture  # noqa: E402
import stacks  # noqa: E402
import tree  # noqa: E402
from command import Complaint  # noqa: E402
from profile_samples import NEW, OLD, RECORDED  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def collapse(text):
    return stacks.collapse(io.StringIO(text))


class Collapsing(unittest.TestCase):
    def test_what_was_recorded(self):
        folded, pids = collapse(RECORDED)
        self.assertEqual(pids, {27309})
        on_conv2 = ("worker 1", "backward", "conv2: conv2d_relu_max_pool2d_grad_input [sparse]", "run")
        self.assertEqual(folded, {
            ("worker 0", "forward", "dense1: dense_relu [xsmm]", "xsmm gemm m48 n32 k241 accumulates"): 1,
            (*on_conv2, "add_windows<2, 3, 3, true>"): 1,
            on_conv2: 1,  # whatever interrupted it
            ("worker 0", "StarPU", "__sched_yield"): 1,
            ("worker 0", "waits"): 1,
            ("worker 0", "runtime", "runtime::Crew::work", "runtime::Crew::perform", "runtime::Crew::release"): 1,
            ("worker 0", "some op", "xsmm transpose 64x32"): 1,
            ("host", "main", "data::draw", "exc_page_fault_[k]", "do_anonymous_page_[k]"): 1})

    def test_what_the_parts_are(self):
        folded, _ = collapse(RECORDED)
        ops, workers, _ = headline.parts(folded)
        self.assertEqual(ops, {"backward conv2: conv2d_relu_max_pool2d_grad_input [sparse]": 2, "forward dense1: dense_relu [xsmm]": 1})
        self.assertEqual(workers, {"ops": 4, "waits": 1, "runtime": 1, "StarPU": 1})
        self.assertEqual(sum(headline.in_steps(folded).values()), 6)
        self.assertEqual({stack[0] for stack in headline.merged(folded)}, {"workers", "host"})
        self.assertEqual(headline.parts(headline.merged(folded))[0], ops)
        self.assertEqual(headline.top(folded)[0], " 25.0 %  backward conv2: conv2d_relu_max_pool2d_grad_input [sparse]")
        self.assertIn("57.1 % in ops, 14.3 % waiting", headline.top(folded)[-2])
        self.assertIn("8 samples say little", headline.top(folded)[-1])
        self.assertIn("1 sample says little", headline.top(Counter({("a",): 1}))[-1])

    def test_ops_by_other_names(self):
        op = "CPU 3 5/6 \n\t7f {} (/tmp/perf-5.map)\n\n"
        for name, expected in {"update sgd conv1.bias [plain]": ("update", "conv1.bias: sgd [plain]"),
                               "staging full [plain]": ("staging", "full [plain]"),
                               "evaluate matmul net.txt:7; y [cudnn a 2]": ("evaluate", "net.txt:7: y: matmul [cudnn a 2]"),
                               "forward no kernel": ("some op", "forward no kernel")}.items():
            self.assertEqual(list(collapse(op.format(name))[0]), [("worker 3", *expected)], name)

    def test_threads_and_programs(self):
        two = """bash 1/1
\t1 yylex (/usr/bin/bash)

arenite 2/2
\t1 main (/a)

CPU 0 2/3
\t1 arenite::runtime::Crew::work (/a)

CUDA 1 2/4
\t1 forward conv2d conv1 [cudnn] (/tmp/perf-2.map)

helper 2/5
\t1 [unknown] (/usr/lib/libfoo.so)

CPU 7 8/9
\t1 f (/b)

"""
        self.assertEqual(set(collapse(two)[0]), {
            ("bash", "yylex"), ("arenite", "host", "main"), ("arenite", "worker 0", "waits"),
            ("arenite", "CUDA worker 1", "forward", "conv1: conv2d [cudnn]"), ("arenite", "helper", "[libfoo.so]"),
            ("process 8", "worker 7", "StarPU", "f")})

    def test_garbage_is_passed_over(self):
        for text in ("", "\n\n\n", "\t1 lonely (frame)\n", "x\ny\n", "CPU 0 12/\n\t\n", "\x00\xff;; 1/2 (\n\t(((\n", ") (1/1\n\tzz f (g)\n"):
            folded, _ = collapse(text)
            self.assertTrue(all(isinstance(name, str) and name for stack in folded for name in stack), text)
        cut = RECORDED[:len(RECORDED) // 2]
        self.assertGreater(sum(collapse(cut)[0].values()), 2)
        for end in range(0, len(RECORDED), 97):
            collapse(RECORDED[end:])

    def test_signs_of_folded_stacks_in_names(self):
        folded, _ = collapse("a;b c 7/7\n\t1 f;g  h (x y)\n\n")
        self.assertEqual(stacks.text(folded), "a:b c;f:g h 1\n")

    def test_reading_them_again(self):
        folded, _ = collapse(RECORDED)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "f"
            path.write_text(stacks.text(folded) + "\n")
            self.assertEqual(stacks.read(path), folded)
            for text, expected in {"a;b\n": r"f:1: 'a;b'; expected frames", "a 1\nb x\n": "f:2: 'b x'", "": "no samples", "a 0": "no samples"}.items():
                path.write_text(text)
                with self.assertRaisesRegex(Complaint, expected):
                    stacks.read(path)
            with self.assertRaisesRegex(Complaint, "cannot read .*missing: No such file"):
                stacks.read(pathlib.Path(folder) / "missing")
            with self.assertRaisesRegex(Complaint, "cannot read"):
                stacks.read(folder)


class Names(unittest.TestCase):
    def test_shortening(self):
        for symbol, expected in {
                "main": "main", "__memset_avx512_unaligned_erms": "__memset_avx512_unaligned_erms",
                "arenite::codelets::conv2d::(anonymous namespace)::run<3, true>": "conv2d::run<3, true>",
                "arenite::runtime::on_state<&arenite::codelets::(anonymous namespace)::run, arenite::codelets::A<int> >.cold": "run",
                "arenite::runtime::on_state<&(void arenite::codelets::run<3, true>(arenite::runtime::KernelCall const&, arenite::A const&)), "
                "arenite::A>": "run<3, true>",
                "arenite::runtime::Crew::work": "runtime::Crew::work",
                "std::vector<std::__cxx11::basic_string<char, std::allocator<char> > >::push_back": "std::vector<…>::push_back",
                "finish_task_switch.isra.0": "finish_task_switch", "f.part.0.cold": "f", "pthread_mutex_lock@@GLIBC_2.2.5": "pthread_mutex_lock",
                "a::operator<": "a::operator<", "operator<< <int>": "operator<< <int>", "a::operator()<b>": "a::operator()<b>",
                "x->y": "x->y", "broken<<<": "broken<<<", "f)(": "f)(", "": "", ".cold": ".cold",
                "g(int, std::vector<int, std::allocator<int> > const&)::{lambda()#1}::operator()": "g(…)::{lambda()#1}::operator()"}.items():
            self.assertEqual(names.shorten(symbol), expected)

    @unittest.skipUnless(shutil.which("c++filt"), "no c++filt")
    def test_demangling(self):
        self.assertEqual(names.demangle({"_ZN7arenite7runtime4Crew4workEv", "main", "_Znonsense"}),
                         {"_ZN7arenite7runtime4Crew4workEv": "arenite::runtime::Crew::work", "_Znonsense": "_Znonsense"})
        folded, _ = collapse("x 1/1\n\t1 _ZN7arenite4data4drawEi (/a)\n")
        self.assertEqual(list(folded), [("x", "data::draw")])


class Pictures(unittest.TestCase):
    folded = Counter({("worker 0", "forward", "conv1: conv2d [direct]", "run"): 60, ("worker 0", "forward", "conv1: conv2d [direct]"): 10,
                      ("worker 0", "backward", 'a<b> & "c"'): 20, ("host", "main"): 9, ("worker 10", "waits"): 1, ("worker 2", "waits"): 1})

    def frames(self, text):
        """(title, x, y, width, fill) of every frame; raises where the file is no XML."""
        root = xml.fromstring(text)
        frames = root.find(f"{SVG}g[@id='frames']")
        for group in frames.findall(f"{SVG}g"):
            rect = group.find(f"{SVG}rect")
            yield (group.find(f"{SVG}title").text, *(float(rect.get(name)) for name in ("x", "y", "width")), rect.get("fill"))

    def test_widths_add_up(self):
        frames = list(self.frames(picture.flame_graph(self.folded, "t", "s")))
        rows = {}
        for title, x, y, width, _ in frames:
            rows.setdefault(y, []).append((x, width, title))
        bottom = max(rows)
        self.assertEqual([(x, width) for x, width, _ in rows[bottom]], [(picture.MARGIN, picture.WIDTH - 2 * picture.MARGIN)])
        above = bottom
        for y in sorted(rows, reverse=True)[1:]:
            self.assertAlmostEqual(y, above - picture.ROW)
            for x, width, title in rows[y]:  # each stands on one frame, whole
                under = [b for b in rows[above] if b[0] - 0.02 <= x and x + width <= b[0] + b[1] + 0.02]
                self.assertEqual(len(under), 1, title)
            ends = [x for x, width, _ in sorted(rows[y])[1:]]
            self.assertTrue(all(x + width <= end + 0.02 for (x, width, _), end in zip(sorted(rows[y]), ends)))
            above = y
        threads = sorted(rows[bottom - picture.ROW])
        self.assertAlmostEqual(sum(width for _, width, _ in threads), picture.WIDTH - 2 * picture.MARGIN, delta=0.1)
        self.assertEqual([title.split("\n")[0] for _, _, title in threads], ["host", "worker 0", "worker 2", "worker 10"])
        self.assertIn("forward\n70 samples, 69.31 %", [title for title, *_ in frames])

    def test_phases_come_in_a_steps_order(self):
        frames = {title.split("\n")[0]: x for title, x, *_ in self.frames(picture.flame_graph(self.folded, "t", "s"))}
        self.assertLess(frames["forward"], frames["backward"])

    def test_any_text_is_escaped(self):
        odd = 'a<b> & "c" \x01\ud800 ]]> </title>'
        text = picture.flame_graph({(odd, odd): 3}, odd, odd)
        self.assertEqual(sum("a<b> & \"c\"" in title for title, *_ in self.frames(text)), 2)
        self.assertEqual(text.count("]]>"), 1)  # the script's own end

    def test_kinds_have_their_colours(self):
        fills = {title.split("\n")[0]: fill for title, *_, fill in self.frames(picture.flame_graph(self.folded, "t", "s"))}
        self.assertEqual(len({fills["forward"], fills["backward"], fills["waits"], fills["host"], fills["main"]}), 5)
        for path, kind in {(): "", ("host",): "", ("worker 1",): "", ("workers", "waits"): "waits until a task is ready",
                           ("worker 1", "StarPU", "f"): "in StarPU, polling", ("p", "worker 1", "runtime"): "runtime",
                           ("worker 1", "update", "x [plain]", "run"): "update", ("worker 1", "update", "xsmm gemm m1"): "LIBXSMM's code",
                           ("host", "main", "read_[k]"): "system", ("host", "main"): "other code", ("worker 1", "some op", "f"): "an op that left no trace",
                           }.items():
            self.assertEqual(picture.kind_of(path), kind)

    def test_narrow_frames_are_left_out_and_deep_stacks_are_not(self):
        deep = tuple(f"f{i}" for i in range(3000))
        text = picture.flame_graph({deep: 1000, ("narrow",): 1, ("less",): 10**6}, "t", "s")
        titles = [title for title, *_ in self.frames(text)]
        self.assertFalse(any(title.startswith("narrow") for title in titles))
        self.assertTrue(any(title.startswith("f2999") for title in titles))

    def test_labels_fit(self):
        sketch = picture.Picture("t", "s")
        for space in range(0, 200):
            label = sketch.label("a name of some length", space)
            self.assertLessEqual(len(label) * picture.LETTER, max(space - 6, 0))
        self.assertEqual(sketch.label("abcdef", 1000), "abcdef")


class Differences(unittest.TestCase):
    old, new = OLD, NEW

    def test_colours_tell_more_less_and_chance(self):
        root = tree.build(self.new, self.old)
        nodes = {node.name: tree.change(node, root) for node, *_ in tree.walk(root)}
        self.assertAlmostEqual(nodes["a"].points, 25)  # of shares, whatever the totals
        self.assertAlmostEqual(nodes["b"].points, -14.75)
        self.assertTrue(nodes["forward"].is_chance)
        self.assertEqual(str(nodes["a"]), "50.0 % → 75.0 % (+25.0 points)")
        fills = {title.split("\n")[0]: fill for title, *_, fill in Pictures().frames(picture.difference_graph(self.old, self.new, "t", "s"))}

        def red_and_blue(name):
            return int(fills[name][1:3], 16), int(fills[name][5:7], 16)
        self.assertGreater(*red_and_blue("a"))
        self.assertGreater(*red_and_blue("new"))
        self.assertLess(*red_and_blue("b"))
        self.assertEqual(*red_and_blue("forward"))
        # The more, the stronger.
        self.assertLess(int(fills["a"][5:7], 16), int(fills["new"][5:7], 16))

    def test_what_is_gone_is_said(self):
        self.assertIn("gone: gone (20.0 %)", picture.difference_graph(self.old, self.new, "t", "s"))

    def test_the_same_is_no_difference(self):
        text = picture.difference_graph(self.old, self.old, "t", "s")
        self.assertEqual({fill for *_, fill in Pictures().frames(text)}, {picture.colour(*picture.SAME)})
        self.assertEqual(headline.changed(self.old, self.old), ["nothing changed beyond what chance makes"])

    def test_a_few_samples_are_chance(self):
        root = tree.build({("a",): 3, ("b",): 2}, {("a",): 2, ("b",): 3})
        self.assertTrue(all(tree.change(node, root).is_chance for node, *_ in tree.walk(root)))


if __name__ == "__main__":
    unittest.main()

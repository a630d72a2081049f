#!/usr/bin/env python3
"""`arenite plan` of tables. Usage: cli_plan_test.py COMMAND [SANITIZER]"""
import json
import os
import signal
import time
import xml.etree.ElementTree

import cli_testing
from cli_plan_testing import GADGET, HELP, Case
from cli_testing import run, start_command


class Table(Case):
    def setUp(self):
        super().setUp()
        self.table = self.root / "table.csv"
        self.table.write_text(GADGET)

    def plan(self, *arguments):
        return run("plan", str(self.table), *map(str, arguments))

    def test_outputs(self):
        out, offsets, svg = (self.root / name for name in ("plan.json", "offsets.csv", "plan.svg"))
        result = self.plan("--out", out, "--csv", offsets, "--svg", svg)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith(
            "8 buffers of 12 bytes in sum\n"
            "cpu:0/host: peak 5 bytes, optimal: proved (first_fit_by_size)\n"
            "  lower bound 5 (search), max-live 4\nplanned in "), result.stdout)
        plan = json.loads(out.read_text())
        self.assertEqual([plan[key] for key in ("peak", "max_live", "lower_bound", "optimal")], [5, 4, 5, True])
        self.assertGreaterEqual(plan["milliseconds"], 0)
        placed = {buffer["name"]: buffer["offset"] for buffer in plan["buffers"]}
        header, *rows = offsets.read_text().splitlines()
        self.assertEqual(header, "id,lower,upper,size,offset")
        self.assertEqual(rows, [f"{row},{placed[row[0]]}" for row in GADGET.splitlines()[1:]])
        self.assertTrue(xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg"))

        sound = self.plan("--verify", out)
        self.assertEqual(sound.returncode, 0)
        self.assertTrue(sound.stdout.startswith("sound: 8 buffers"))
        self.assertIn("not confirmed", sound.stdout)

    def test_the_same_plan_again_and_from_shuffled_rows(self):
        header, *rows = GADGET.splitlines(keepends=True)
        plans = []
        for table in (GADGET, GADGET, header + "".join(reversed(rows))):
            self.table.write_text(table)
            offsets = self.root / "offsets.csv"
            self.assertEqual(self.plan("--csv", offsets).returncode, 0)
            plans.append(sorted(offsets.read_text().splitlines()))
        self.assertEqual(plans[0], plans[1])
        self.assertEqual(plans[0], plans[2])

    def test_capacity(self):
        self.assertEqual(self.plan("--capacity", "5").returncode, 0)
        out = self.root / "plan.json"
        for strategy, capacity, verdict, needed, says in (
                ("auto", 4, "infeasible: proved", 5, "infeasible: proved: at least 5 bytes"),
                ("bump", 6, "not found within budget", 12, "not found within budget: the best plan takes 12 bytes")):
            result = self.plan("--capacity", capacity, "--strategy", strategy, "--out", out)
            self.assertEqual(result.returncode, 3)
            self.assertIn(f"arenite: space cpu:0/host: {says}; expected at most the capacity of {capacity} bytes "
                          "(hint: alive together: 'a' (2 bytes, lifetime [0, 1)), 'b'", result.stderr)
            plan = json.loads(out.read_text())
            self.assertEqual([plan[key] for key in ("verdict", "capacity", "bytes_needed", "buffers_at_peak")],
                             [verdict, capacity, needed, ["a", "b"]])

    def test_a_capacity_is_met_to_the_byte(self):
        head, out = "id,lower,upper,size,alignment", self.root / "plan.json"
        one = f"{head}\na,0,2,100,64\n"
        for table, peak, fits in ((one, 100, 104), (f"{one}b,0,2,4,4\n", 104, 104),
                                  (f"{head},alias\nb1,6,8,7,1,k\nb2,8,11,3,4,k\n", 7, 7)):
            with self.subTest(table=table):
                self.table.write_text(table)
                for capacity in (fits, peak):
                    result = self.plan("--capacity", capacity, "--out", out)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    self.assertIn(f"cpu:0/host: peak {peak} bytes, optimal: proved (first_fit_by_size)\n"
                                  f"  lower bound {peak} (live), max-live {peak}\n", result.stdout)
                    self.assertEqual(self.plan("--verify", out, "--capacity", capacity).returncode, 0)
                self.assertEqual({buffer["offset"] for buffer in json.loads(out.read_text())["buffers"]},
                                 {0, 100} if peak == 104 else {0})
                result = self.plan("--capacity", peak - 1)
                self.assertEqual(result.returncode, 3)
                self.assertIn(f"infeasible: proved: at least {peak} bytes; "
                              f"expected at most the capacity of {peak - 1} bytes", result.stderr)

    def test_capacity_with_a_unit(self):
        self.table.write_text("id,lower,upper,size\na,0,1,1536\n")
        for capacity, status in (("1.5KiB", 0), ("1KiB", 3), ("1MiB", 0), ("0", 3), ("1535", 3), ("1536", 0)):
            self.assertEqual(self.plan("--capacity", capacity).returncode, status, capacity)

    def test_one_file_for_two(self):
        """None is written then, and the table stays."""
        (self.root / "link").symlink_to("table.csv")
        (self.root / "folder").mkdir()
        other = self.root / "other"
        for first, second, path in (("--out", "--svg", other), ("--csv", "--svg", self.root / "folder/../other")):
            self.refused(self.plan(first, other, second, path),
                         f"{first} and {second} name the same file '{path}'; expected a file of its own for each")
        for option in ("--out", "--csv", "--svg"):
            for path in (self.table, self.root / "link"):
                self.refused(self.plan(option, path),
                             f"INPUT and {option} name the same file '{path}'; expected a file of its own for each")
        self.assertEqual(sorted(os.listdir(self.root)), ["folder", "link", "table.csv"])
        self.assertEqual(self.table.read_text(), GADGET)
        printed = self.plan("--out", "/dev/stdout", "--csv", "/dev/stdout")  # a pipe takes both
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertIn("id,lower,upper,size,offset\n", printed.stdout)

    def test_interrupts_leave_nothing(self):
        self.table.unlink()
        os.mkfifo(self.table)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = start_command("plan", str(self.table), "--effort", "max", "--out", str(self.root / "plan.json"))
            with open(self.table, "w") as table:  # waits for the command, however slow it is to start
                table.write("id,lower,upper,size\n")
                for i in range(300):  # no plan of these is proved optimal: the search goes on
                    table.write(f"{i},{i * 37 % 101},{i * 37 % 101 + 1 + i * i % 43},{1 + i * 7919 % 1009}\n")
            time.sleep(0.5)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.assertEqual(os.listdir(self.root), ["table.csv"])

    def test_verify_judges_the_capacity_and_makes_nothing(self):
        out = self.root / "plan.json"
        self.plan("--out", out)
        result = self.plan("--verify", out, "--capacity", "4")
        self.assertEqual(result.returncode, 3)
        self.assertIn("infeasible: proved: at least 5 bytes", result.stderr)
        self.assertIn("--svg together with --verify; expected one of them (hint: ",
                      self.plan("--verify", out, "--svg", self.root / "a.svg").stderr)

    def test_bad_plans(self):
        out = self.root / "plan.json"
        self.plan("--out", out)
        text = out.read_text()
        out.write_text(text.replace('"optimal":true,"strategy"', '"optimal":false,"strategy"'))
        result = self.plan("--verify", out)
        self.assertEqual(result.returncode, 2)
        self.assertIn("'optimal' exactly when the two are equal", result.stderr)
        out.write_text(text[:-20])
        self.assertEqual(self.plan("--verify", out).returncode, 2)

    def test_bad_input(self):
        cases = [("", ": no header; expected a first line such as 'id,lower,upper,size'"),
                 ("id,lower,upper,size\na,0,1,x\n",
                  ", line 2, column 7: size 'x'; expected a whole number of 0 to 1,152,921,504,606,846,976"),
                 ("id,lower,upper,size\na,1,1,5\n",
                  ", line 2, column 5: the lifetime [1, 1); expected an upper above the lower")]
        for text, message in cases:
            with self.subTest(text=text):
                self.table.write_text(text)
                self.refused(self.plan("--out", self.root / "plan.json"), f"{self.table}{message}")
        self.assertEqual(os.listdir(self.root), ["table.csv"])
        self.refused(run("plan", str(self.root)), f"'{self.root}': a folder; expected a table or a graph script")
        self.refused(run("plan", str(self.root / "none")),
                     f"'{self.root / 'none'}': No such file or directory; "
                     "expected a table or a graph script that can be read")

    def test_bad_arguments(self):
        for tasks in ("0", "-1", "", "2.0", "all"):
            self.refused(self.plan("--in-flight", tasks), f"--in-flight: '{tasks}'; expected lanes, unlimited or "
                         f"a whole number of 1 to 1152921504606846976{HELP}")
        self.refused(run("plan"), f"no INPUT; expected a path{HELP}")
        self.refused(self.plan("--effort", "more"), f"--effort: 'more' (did you mean 'max'?); expected one of fast, default, max{HELP}")
        self.refused(self.plan("--align", "3"), f"--align: '3'; expected a power of two of at most 2^40{HELP}")
        for capacity in ("-1", "5 KiB", "5kib", "5KB", "MiB", ""):
            self.refused(self.plan("--capacity", capacity), f"--capacity: '{capacity}'; expected bytes, as in 4096, 64MiB or 1.5GiB{HELP}")
        for option in ("--out", "--csv", "--svg", "--verify"):
            self.refused(self.plan(option, "-"), f"{option}: '-'; expected a path: /dev/stdin, /dev/stdout, or ./- for a file{HELP}")
        self.refused(run("plan", "-"), f"INPUT: '-'; expected a path: /dev/stdin, /dev/stdout, or ./- for a file{HELP}")
        self.refused(self.plan("--strategi", "bump"),
                     f"unknown argument '--strategi' (did you mean '--strategy'?); expected options of plan{HELP}")
        result = self.plan("--out", self.root / "no" / "plan.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("No such file or directory", result.stderr)

    def test_in_flight(self):
        out, offsets = self.root / "plan.json", self.root / "offsets.csv"
        result = self.plan("--in-flight", "2", "--out", out, "--csv", offsets)
        self.assertEqual(result.returncode, 0)
        self.assertIn("2 tasks in flight: lifetimes end 1 later\n", result.stdout)
        plan = json.loads(out.read_text())
        self.assertEqual((plan["in_flight"], plan["max_live"]), (2, 6))
        self.assertEqual({b["name"]: b["end"] for b in plan["buffers"]}["h"], 7)
        self.assertIn("\nh,5,6,2,", offsets.read_text())
        self.assertEqual(self.plan("--in-flight", "2", "--verify", out).returncode, 0)
        result = self.plan("--verify", out)
        self.assertEqual(result.returncode, 2)
        self.assertIn("lifetime [0, 2)", result.stderr)
        for mode, hint in (("lanes", "a table has one line of times and no lanes"),
                           ("unlimited", "with no order in time no two buffers could share bytes")):
            self.refused(self.plan("--in-flight", mode), f"'{self.table}': --in-flight {mode} for a table; "
                         f"expected a whole number of at least 1 (hint: {hint})")
        result = self.plan("--in-flight", 2**60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("buffer 'b': a lifetime that ends 1,152,921,504,606,846,975 moments after 3", result.stderr)


if __name__ == "__main__":
    cli_testing.main()

#!/usr/bin/env python3
"""`arenite plan` of graph scripts and models. Usage: cli_plan_graph_test.py COMMAND [SANITIZER]"""
import json
import re
import xml.etree.ElementTree

import cli_testing
from cli_plan_testing import GADGET, HELP, Case
from cli_testing import run

# Each result needs the one before it alone: the two layers before the last are alive together, 2 KiB each.
SCRIPT = """# three layers
$1 = InputTensor(x, float32, [8, 64]);
$2 = ParameterTensor(w, float32, [64, 64]);
$3 = dense($1, $2);
$4 = silu($3);
$5 = dense($4, $2);
$6 = silu($5);
$7 = dense($6, $2);
result = $7;
"""

# One way into the loop holds two values at a time, the other one only its result; each trip holds two.
BLOCKS = """# a gate, then three trips over the same weights
$1 = InputTensor(gate, int64, [1]);
$2 = InputTensor(x, float32, [256, 256]);
$3 = ParameterTensor(w, float32, [256, 256]);
$4 = if($1) {
  $5 = dense($2, $3);
  $6 = relu($5);
  $7 = dense($6, $3);
  yield $7;
} else {
  $8 = relu($2);
  yield $8;
}
$10 = loop(_, _, $4, max_trips=3) ($11, $12) {
  $13 = dense($12, $3);
  yield $13;
}
$14 = dense($10, $3);
result = $14;
"""

# Its batch can be cut in shards.
TRAINED = """$1 = InputTensor(x, float32, [12, 8]);
$2 = ParameterTensor(w, float32, [8, 2]);
$5 = dense($1, $2);
$6 = mul($5, $5);
$7 = sum_to($6, [1, 1]);
train($7, optimizer=sgd, learning_rate=0.1, parameters=[$2]);
result = $7;
"""


class Step(Case):
    def planned(self, text, *arguments):
        """The JSON plan of an input, and what was said."""
        out = self.root / "plan.json"
        result = run("plan", str(text), "--out", str(out), *map(str, arguments))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(out.read_text()), result.stdout

    def script(self, text=SCRIPT, name="net.txt"):
        path = self.root / name
        path.write_text(text)
        return path

    def test_script(self):
        path = self.script()
        offsets, svg = self.root / "offsets.csv", self.root / "plan.svg"
        plan, said = self.planned(path, "--csv", offsets, "--svg", svg)
        size = 8 * 64 * 4
        self.assertTrue(said.startswith(
            f"graph script {path}\n5 ops in 1 task; in flight: lanes\n2 buffers of 4,096 bytes in sum\n"
            "cpu:0/host: peak 4,096 bytes, optimal: proved (first_fit_by_size)\n"
            "  lower bound 4,096 (live), max-live 4,096\n"), said)
        self.assertIn("blocks apart from these, in bytes: state 16,384, input 2,048 a task set, "
                      "output 2,048 a task set\n", said)
        self.assertEqual([plan[key] for key in ("peak", "max_live", "lower_bound", "optimal", "separate", "tasks")],
                         [2 * size, 2 * size, 2 * size, True, 2 * size, 1])
        self.assertEqual(plan["in_flight"], "lanes")
        header, *rows = offsets.read_text().splitlines()
        self.assertEqual(header, "id,lower,upper,size,alignment,space,offset")
        placed = {b["name"]: f"{b['begin']},{b['end']},{b['bytes']},256,cpu:0/host,{b['offset']}" for b in plan["buffers"]}
        self.assertEqual(rows, [f"{name},{rest}" for name, rest in placed.items()])
        self.assertTrue(xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg"))
        # A row each, with a place that the table's own rules accept.
        again = run("plan", str(offsets))
        self.assertIn("peak 4,096 bytes", again.stdout)

    def test_copies_are_named(self):
        path = self.script("""$1 = BufferTensor(state, float32, [64, 16]);
$2 = InputTensor(x, float32, [1, 16]);
$3 = InputTensor(begin, int64, [1]);
$4 = replace_slice($1, $2, $3);
$5 = relu($1);
result = $5;
""")
        plan, said = self.planned(path)
        self.assertIn("\ncopied: replace_slice #0: relu #1 reads the old version later\n", said)
        self.assertEqual(plan["copies"],
                         [{"op": "replace_slice #0", "reason": "relu #1 reads the old version later"}])
        path.write_text(path.read_text().replace("relu($1)", "relu($4)"))
        plan, said = self.planned(path)
        self.assertNotIn("copied", said)
        self.assertNotIn("copies", plan)

    def test_what_is_a_script(self):
        for name, text in (("net", SCRIPT), ("a.csv.txt", " \r\n" + SCRIPT[SCRIPT.index("$"):]), ("none", "result = _;")):
            self.assertTrue(run("plan", str(self.script(text, name))).stdout.startswith("graph script"))
        self.refused(run("plan", str(self.script(name="net.csv"))),
                     f"{self.root / 'net.csv'}, line 1, column 1: no column 'id'; "
                     "expected the columns id, lower, upper (or end) and size")
        for table in (GADGET, "result,id,lower,upper,size\n,a,0,1,2\n"):
            self.assertEqual(run("plan", str(self.script(table, "table"))).returncode, 0)

    def test_misspelt_strategies(self):
        result = run("plan", str(self.script()), "--strategy", "serch")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("arenite: --strategy: 'serch' (did you mean 'search'?); expected one of"),
                        result.stderr)

    def test_bad_scripts(self):
        for change, message in (
                (("silu($3)", "sillu($3)"), ":5:6: unknown operator 'sillu'; expected a registered operator "
                                            "(hint: did you mean 'silu'?)"),
                (("dense($4, $2)", "dense($4, $1, $2, $1)"), ":6:6: "),
                (("= dense($4, $2);", "= dense($4, $2)"), ":7:1: '$6'; expected ';' after the statement"),
                (("result = $7;", ""), ":10:1: the end of the script; expected 'result = $…;'")):
            with self.subTest(change=change):
                path = self.script(SCRIPT.replace(*change))
                result = run("plan", str(path))
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertTrue(result.stderr.startswith(f"arenite: {path}{message}"), result.stderr)
        path = self.script()
        self.refused(run("plan", str(path), "--align", "64"),
                     f"'{path}': --align 64 for a script or a model; expected a table "
                     "(hint: the buffers of a step are aligned to 256 bytes)")

    def test_blocks(self):
        """A network with a branch and a loop: the values of blocks that exclude each other share their bytes."""
        path = self.script(BLOCKS)
        result = run("plan", str(path))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("3 ops in ", result.stdout)
        self.assertIn("cpu:0/host: peak 524,544 bytes, optimal: proved", result.stdout)
        swap = self.script("""$1 = InputTensor(a, float32, [64]);
$2, $3 = loop(_, _, $1, $1, max_trips=3) ($4, $5, $6) {
  yield $6, $5;
}
result = $2, $3;
""")
        self.assertEqual(run("plan", str(swap)).returncode, 0)
        self.refused(run("plan", str(self.script(BLOCKS.replace("yield $7", "yield $9")))),
                     f"{self.root}/net.txt:9:9: unknown reference '$9'; expected a value defined above")

    def test_sizes_known_at_run_time(self):
        """Planned at their upper bounds, or at what a run makes them."""
        path = self.script(SCRIPT.replace("x, float32, [8, 64]", "x, float32, [rows<=64, 64]"))
        plan, said = self.planned(path)
        self.assertTrue(said.startswith(f"graph script {path}, at rows<=64\n"), said)
        self.assertEqual((plan["peak"], plan["bounds"]), (2 * 64 * 64 * 4, {"rows": 64}))
        plan, said = self.planned(path, "--size", "rows=40")
        self.assertTrue(said.startswith(f"graph script {path}, at rows=40\n"), said)
        self.assertEqual(plan["peak"], 2 * 40 * 64 * 4)
        self.assertNotIn("bounds", plan)
        named = '''
$1 = InputTensor(x, float32, [rows<=64, 36]);
$2 = ParameterTensor(filter, float32, [3, 3, 1, 2]);
$3 = reshape($1, [rows, 6, 6, 1]);
$4 = conv2d($3, $2);
$5 = reshape($4, [rows, -1]);
$6 = InputTensor(label, int32, [rows]);
$7, $8, $9 = softmax_cross_entropy($5, $6, divisor=rows);
train($7, optimizer=sgd, learning_rate=0.1, parameters=[$2]);
result = $7;
'''
        for size, given in ((64, ()), (40, ("--size", "rows=40")), (1, ("--size=rows=1",))):
            written, _ = self.planned(self.script(named.replace("rows<=64", str(size)).replace("rows", str(size)), "written"))
            plan, _ = self.planned(self.script(named, "named"), *given)
            for field in ("peak", "separate", "ops", "tasks", "arenas", "blocks_apart"):
                self.assertEqual(plan[field], written[field], (size, field))
        plan, said = self.planned(self.script(named, "named"), "--programs", "--size", "rows=40")
        programs = [(one["entry"], one["sizes"], one["fit"]) for one in plan["programs"]]
        self.assertEqual(programs, [(entry, {"rows": rows}, "own plan") for rows in (64, 40) for entry in ("train", "evaluate")])
        self.assertEqual(plan["programs"][2]["step"], plan["peak"])
        blocks = {(one["block"], one["entry"]): one["bytes"] for one in plan["blocks"]}
        self.assertEqual(blocks["step", ""], max(one["step"] for one in plan["programs"]))
        self.assertIn(f"all blocks, with 2 task sets: {sum(blocks.values()):,} bytes\n", said)
        self.assertIn("\n  evaluate  rows=40  ", said)
        for size, message in (
                ("rows=65", f"'{path}': size rows=65; expected 1 to 64, its upper bound"),
                ("row=4", f"'{path}': unknown size 'row'; expected one of rows (hint: did you mean 'rows'?)")):
            self.refused(run("plan", str(path), "--size", size), message)
        for size in ("rows", "rows=", "rows=0", "rows=-3", "=3", "rows=1.5", "rows=281474976710657"):
            self.refused(run("plan", str(path), "--size", size),
                         f"--size: '{size}'; expected NAME=N, N a whole number of 1 to 281474976710656" + HELP)
        self.refused(run("plan", str(path), "--size", "rows=1", "--size", "rows=2"),
                     "--size: 'rows' twice; expected each once" + HELP)
        self.refused(run("plan", "model:lenet5", "--size", "batch=2"),
                     "'model:lenet5': --size for a model; expected a graph script "
                     "(hint: its batch is said with it, as in model:cnn2?batch=32)")
        table = self.script(GADGET, "table")
        self.refused(run("plan", str(table), "--programs"), f"'{table}': --programs for a table; expected a graph script")
        self.refused(run("plan", "model:lenet5", "--programs"), "'model:lenet5': --programs for a model; expected a graph script")
        self.refused(run("plan", str(table), "--size", "rows=2"), f"'{table}': --size for a table; expected a graph script")
        self.refused(run("plan", str(self.script(SCRIPT.replace("[8, 64]", "[rows, 64]")))),
                     f"{self.root}/net.txt:2:31: dimension 'rows' of 'x', known only at run time, without an upper bound; "
                     "expected one, as in rows<=64 (hint: memory is planned at the bound)")

    def test_verify(self):
        path, out = self.script(), self.root / "plan.json"
        plan, said = self.planned(path)
        sound = run("plan", str(path), "--verify", str(out))
        self.assertEqual(sound.returncode, 0)
        self.assertEqual(sound.stdout, "sound: " + "".join(said.splitlines(keepends=True)[:5]))
        for buffer in plan["buffers"]:
            buffer["offset"] = 0
        out.write_text(json.dumps(plan))
        result = run("plan", str(path), "--verify", str(out))
        self.assertEqual(result.returncode, 2)
        self.assertIn("overlap and may be alive together", result.stderr)
        for option in ("--passes", "--graphs"):
            self.refused(run("plan", str(path), "--verify", str(out), option),
                         f"{option} together with --verify; expected one of them" + HELP)
        # Another model's, and one that is no plan.
        self.assertEqual(run("plan", "model:mlp", "--verify", str(out)).returncode, 2)
        self.assertEqual(run("plan", str(path), "--verify", str(path)).returncode, 2)

    def test_capacity(self):
        path = self.script()
        self.assertEqual(run("plan", str(path), "--capacity", "4096").returncode, 0)
        result = run("plan", str(path), "--capacity", "4095", "--out", str(self.root / "plan.json"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("space cpu:0/host: infeasible: proved: at least 4,096 bytes", result.stderr)
        plan = json.loads((self.root / "plan.json").read_text())
        self.assertEqual([plan[key] for key in ("verdict", "bytes_needed")], ["infeasible: proved", 4096])

    def test_spaces_share_one_file(self):
        path = self.script(SCRIPT.replace("$4 =", "$4 @space(cuda, 0, device) ="))
        self.refused(run("plan", str(path)), f"{path}:2:1: a value without a space, where others have one; "
                                             "expected @space(…) for all but views, or for none")
        spaces = {number: "cuda, 0, device" if number == 4 else "cpu, 0, host" for number in range(1, 8)}
        path = self.script(re.sub(r"^\$(\d) =", lambda m: f"${m[1]} @space({spaces[int(m[1])]}) =", SCRIPT, flags=re.M))
        plan, _ = self.planned(path)
        self.assertEqual([space["space"] for space in plan["spaces"]], ["cpu:0/host", "cuda:0/device"])
        self.assertEqual(plan["peak"], 4096)
        self.assertEqual(run("plan", str(path), "--verify", str(self.root / "plan.json")).returncode, 0)

    def test_workers(self):
        """Of one shard they change the estimated time alone, and need not be here."""
        path, lanes = "model:cnn2", ("--lanes", "4")
        one, said = self.planned(path, *lanes, "--workers", 1)
        self.assertRegex(said, r"\nabout \d+ µs a step with 1 worker \(estimated\)\n")
        many, said = self.planned(path, *lanes, "--workers", 1000)
        self.assertRegex(said, r"\nabout \d+ µs a step with 1,000 workers \(estimated\)\n")
        self.assertEqual((one["workers"], many["workers"]), (1, 1000))
        self.assertGreater(one["step_time"], 0)
        self.assertLess(many["step_time"], 0.5 * one["step_time"])
        self.assertEqual(one["buffers"], many["buffers"])
        # As training says it, and before anything is written.
        out = self.root / "none.json"
        self.refused(run("plan", str(path), "--out", str(out), STARPU_NCPU="many"),
                     "STARPU_NCPU='many'; expected a number of workers of at least 1 "
                     "(hint: an explicit number of workers (--workers) wins over it)")
        self.assertFalse(out.exists())
        self.planned(path)
        checked = run("plan", path, "--verify", str(self.root / "plan.json"), "--workers", "3", STARPU_NCPU="many")
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_shards_follow_each_other(self):
        """Fewer at once take fewer bytes; as many as there are workers, unless it is said."""
        path, peaks = "model:cnn2?batch=64", []
        for at_once in 1, 2, 4:
            plan, said = self.planned(path, "--shards", 4, "--at-once", at_once)
            self.assertIn("batch 64 in 4 shards" + (f", {at_once} at once" if at_once < 4 else "") + "\n", said)
            by_workers, _ = self.planned(path, "--shards", 4, "--workers", at_once)
            self.assertEqual(by_workers["peak"], plan["peak"])
            peaks.append(plan["peak"])
        self.assertLess(peaks[0], 0.6 * peaks[2])
        self.assertLess(peaks[0], peaks[1])
        self.assertLess(peaks[1], peaks[2])
        _, said = self.planned(path, "--shards", 2, "--lanes", 2, "--at-once", 1, "--passes")
        self.assertIn("batch 64 in 2 shards of 2 lanes, 1 at once\n", said)
        self.assertIn("\n  line_up_shards  1 shard\n    2 shards → 1 at once\n", said)
        checked = run("plan", path, "--verify", str(self.root / "plan.json"), "--shards", "2", "--lanes", "2", "--at-once", "1")
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        _, said = self.planned(self.script(TRAINED), "--shards", 3, "--at-once", 1)
        self.assertRegex(said, r"^training step of graph script [^\n]* in 3 shards, 1 at once\n")

    def test_shards_that_a_network_cannot_have(self):
        whole = TRAINED.replace("$6 = mul($5, $5);", "$8 = sum_to($5, [1, 2]); $6 = mul($5, $8);")
        self.refused(run("plan", str(self.script(whole)), "--shards", "2"),
                     "program 'step': 2 shards, where mul #2 waits for all shards' sum_to #1; expected a batch whose "
                     "shards need nothing of each other, or one shard")
        self.planned(self.script(whole), "--lanes", 2)
        buffers = self.root / "buffers.csv"
        buffers.write_text("id,lower,upper,size\na,0,1,1\n")
        for option in "--shards", "--lanes", "--at-once", "--workers":
            self.refused(run("plan", str(buffers), option, "2"),
                         f"'{buffers}': {option} for a table; expected a graph script or a model")

    def test_lanes_have_their_reasons(self):
        for model, reason in (
                ("cnn1?batch=2&mode=inference", "    left: a step estimated at {} µs in one lane: 2 lanes pay from 60 µs on\n"),
                ("cnn1?batch=64", "    a step estimated at {} µs in one lane → 2 lanes, which pay from 60 µs on\n"),
                ("cnn2?batch=1", "    left: a step estimated at {} µs in one lane: 2 lanes pay from 60 µs on\n"),
                ("cnn1?batch=64 --lanes=1", "    left: the batch: one lane was asked for\n"),
                ("cnn1?batch=2 --lanes=4", "    left: the batch: it has no more than 2 samples for 4 lanes\n"),
                ("cnn1?batch=1 --shards=4", "    left: the batch: it has no more than 1 sample for 4 shards\n")):
            with self.subTest(model=model):
                path, *options = model.split()
                _, said = self.planned(f"model:{path}", "--passes", *options)
                report = said[said.index("  split_batch "):said.index("  gradients ")]
                self.assertRegex(report, re.escape(reason).replace(r"\{\}", r"\d+"))

    def test_graphs_are_told_as_json(self):
        told = json.loads(run("plan", str(self.script()), "--graphs", "--json").stdout)["graphs"]
        self.assertEqual(told[0]["after"], "")
        self.assertIn("select", [graph["after"] for graph in told])
        for graph in told:
            self.assertIn("result = ", graph["graph"])

    def test_models_are_planned_as_training_does(self):
        for model, lanes, layout in (("mlp", 0, "overlay"), ("cnn1", 1, "overlay"), ("cnn1", 2, "two"),
                                     ("lenet5", 0, "overlay"), ("cnn2", 0, "overlay"), ("cnn2", 4, "two"),
                                     ("vgg-small", 0, "overlay")):
            if model == "vgg-small" and cli_testing.SANITIZER:
                continue  # which evaluates it with plain loops, for minutes
            given = ["--lanes", str(lanes)] if lanes else []
            files = self.root / "train.json"
            images = "synthetic-color" if model == "vgg-small" else "synthetic"
            trained = run("train", "--model", model, "--dataset", images, "--limit", "64", "--batch", "32",
                          "--epochs", "0", "--workers", "1", "--arenas", layout, "--plan-json", str(files), *given)
            self.assertEqual((trained.returncode, trained.stderr), (0, ""))
            plan, said = self.planned(f"model:{model}?batch=32", "--workers", 1, *given)
            packings = [json.loads(p.read_text()) for p in sorted(self.root.glob("train.json*"))]
            if layout == "two":
                self.assertEqual(sum(p["peak"] for p in packings), plan["two_arenas"])
                continue
            self.assertEqual([packings[0][key] for key in ("buffers", "spaces", "reuse")],
                             [plan[key] for key in ("buffers", "spaces", "reuse")])
            self.assertIn(f"training step of model {model}, batch 32 in ", said)

    def test_models(self):
        train, said = self.planned("model:lenet5")
        # How many shards or lanes follows from the kernels' estimated times.
        self.assertRegex(said, r"^training step of model lenet5, batch 64 in \d+ (lanes?|shards, \d at once)\n")
        self.assertIn("forward values: ", said)
        self.assertIn("backward values: ", said)
        self.assertEqual([arena["phase"] for arena in train["arenas"]], ["forward", "backward"])
        self.assertGreaterEqual(train["two_arenas"], train["peak"])
        self.assertGreater(train["separate"], train["two_arenas"])
        self.assertGreaterEqual(train["critical_path"], train["critical_path_without"])
        run_only, said = self.planned("model:lenet5?mode=inference&batch=64", "--lanes", 1)
        self.assertIn("inference step of model lenet5, batch 64 in 1 lane\n", said)
        self.assertLess(run_only["peak"], train["peak"])

    def test_bad_models(self):
        options = "batch=N, mode=train or mode=inference"
        models = "one of mlp, cnn1, lenet5, cnn2, cnn2-bn, vgg-small"
        for text, message in (
                ("model:", f"unknown model ''; expected {models}"),
                ("model:cnn3", f"unknown model 'cnn3'; expected {models} (hint: did you mean 'cnn1'?)"),
                ("model:CNN2?batch=1", f"unknown model 'CNN2'; expected {models} (hint: did you mean 'cnn2'?)"),
                ("model:cnn2?bacth=64", f"unknown option 'bacth'; expected {options} (hint: did you mean 'batch'?)"),
                ("model:cnn2?", f"an option without a name; expected {options}"),
                ("model:cnn2?batch=1&&mode=train", f"an option without a name; expected {options}"),
                ("model:cnn2?batch=1&batch=1", "option 'batch' twice; expected each once"),
                ("model:cnn2?batch", "batch ''; expected a whole number of 1 to 1048576"),
                ("model:cnn2?batch=0", "batch '0'; expected a whole number of 1 to 1048576"),
                ("model:cnn2?batch=-1", "batch '-1'; expected a whole number of 1 to 1048576"),
                ("model:cnn2?batch=1048577", "batch '1048577'; expected a whole number of 1 to 1048576"),
                ("model:cnn2?batch=99999999999999999999",
                 "batch '99999999999999999999'; expected a whole number of 1 to 1048576"),
                ("model:cnn2?lanes=4", f"unknown option 'lanes'; expected {options} "
                                       "(hint: the option --lanes says how many)"),
                ("model:cnn2?mode=training",
                 "mode 'training'; expected train or inference (hint: did you mean 'train'?)")):
            with self.subTest(text=text):
                self.refused(run("plan", text), f"'{text}': {message}")
        self.refused(run("plan", "model:cnn2", "--lanes", "65"), "--lanes: '65'; expected a whole number of 1 to 64" + HELP)
        for option in ("--batch=3", "--batch", "--mode"):
            name = option[2:].split("=")[0]
            self.refused(run("plan", "model:cnn2", option, "3"),
                         f"unknown argument '{option}' (here it is written as model:NAME?{name}=…); expected options of plan" + HELP)
        for text in ("modle:cnn2?batch=64", "cnn2"):
            self.refused(run("plan", text), f"'{text}': No such file or directory; expected a table or a graph "
                         "script that can be read (hint: did you mean 'model:cnn2'?)")
        self.refused(run("plan", "model:mlp", "--align", "1"),
                     "'model:mlp': --align 1 for a script or a model; expected a table "
                     "(hint: the buffers of a step are aligned to 256 bytes)")

    def test_huge_batch(self):
        plan, _ = self.planned("model:cnn1?batch=1048576", "--effort", "fast")
        self.assertGreater(plan["peak"], 2**30)

    def test_in_flight(self):
        plans = {}
        for mode in ("1", "2", "4", "lanes", "unlimited"):
            plans[mode], said = self.planned("model:lenet5", "--in-flight", mode)
            self.assertIn(f" tasks; in flight: {mode}\n", said)
            self.assertEqual(str(plans[mode]["in_flight"]), mode)
            self.assertIn(f"reuse adds {plans[mode]['added_edges']} edges between tasks: critical path ", said)
            self.assertEqual(run("plan", "model:lenet5", "--in-flight", mode, "--verify",
                                 str(self.root / "plan.json")).returncode, 0)
        live = [plans[mode]["max_live"] for mode in ("1", "2", "4", "unlimited")]
        self.assertEqual(live, sorted(live))
        self.assertLess(live[0], live[-1])
        free = plans["unlimited"]
        self.assertEqual((free["added_edges"], free["critical_path"]), (0, free["critical_path_without"]))
        self.assertGreater(plans["1"]["added_edges"], 0)
        self.assertGreater(plans["1"]["critical_path"], free["critical_path"])
        # A plan that counts on one task after another is none where they may run side by side.
        out = self.root / "plan.json"
        self.planned("model:lenet5", "--in-flight", "1")
        result = run("plan", "model:lenet5", "--verify", str(out))
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    cli_testing.main()

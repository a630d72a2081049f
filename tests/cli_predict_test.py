#!/usr/bin/env python3
"""`arenite evaluate` and `arenite predict`, `train --script` and `--validation`. Usage: cli_predict_test.py COMMAND
[SANITIZER]."""
import gzip
import json
import pathlib
import random
import re
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

import cli_testing
from cli_testing import idx, run, train

SCRIPT = """
$1 = InputTensor(pixels, float32, [N<=100, 784]);
$2 = InputTensor(label, int32, [N]);
$3 = ParameterTensor(weight, float32, [784, 10], uniform(-0.05, 0.05));
$4 = ParameterTensor(bias, float32, [10]);
$5 = dense($1, $3, $4);
$6, $7, $8 = softmax_cross_entropy($5, $2, divisor=N);
$9 = slice($7, 1, 2);
train($6, optimizer=adam, learning_rate=0.002);
entry predict = $5;
entry accuracy = $9;
result = _;
"""
SIDE = 28


def png(rows, colour=0, depth=8):
    """Of rows of bytes, each pixel 1 number (colour 0), 3 (2), 2 (4) or 4 (6) of so many bits."""
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour] * depth // 8
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), depth, colour, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))


def npy(kind, shape, data):
    header = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class Networks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.file = str(cls.root / "run.st")
        cls.trained = train("--limit", "1000", "--epochs", "2", "--save", cls.file)
        assert cls.trained.returncode == 0, cls.trained.stderr
        chance = random.Random(3)
        cls.images = [bytes(chance.randrange(256) for _ in range(SIDE * SIDE)) for _ in range(70)]

    def good(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def bad(self, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.replace(str(self.root) + "/", ""), f"arenite: {message}\n")

    def put(self, name, content):
        path = self.root / name
        path.write_bytes(content)
        return str(path)

    def rows(self, image):
        return [image[i:i + SIDE] for i in range(0, SIDE * SIDE, SIDE)]

    def predicted(self, *arguments):
        lines = self.good("predict", self.file, *arguments, "--json").splitlines()
        return [json.loads(line) for line in lines]


class Evaluate(Networks):
    def test_says_what_training_said(self):
        accuracy = re.search(r"test accuracy: (.*) %", self.trained.stdout)[1]
        words = self.good("evaluate", self.file)
        self.assertRegex(words.splitlines()[0], r": mlp, step 32, 2 epochs done$")
        self.assertIn(f"accuracy {accuracy} %  top-3 ", words)
        found = json.loads(self.good("evaluate", self.file, "--json", "--top", "10"))
        self.assertEqual(f"{found['metrics']['accuracy'] * 100:.2f}", accuracy)
        self.assertEqual((found["model"], found["steps"], found["epochs"]), ("mlp", 32, 2))
        self.assertEqual((found["dataset"], found["of"], found["images"]), ("synthetic", "test", 1000))
        self.assertEqual(found["top"], {"k": 10, "accuracy": 1})
        confusion = found["confusion"]
        self.assertEqual(sum(map(sum, confusion)), 1000)
        self.assertAlmostEqual(sum(confusion[i][i] for i in range(10)) / 1000, found["metrics"]["accuracy"])
        for i, of_class in enumerate(found["classes"]):
            self.assertEqual(of_class["images"], sum(confusion[i]))
            self.assertAlmostEqual(of_class["recall"], confusion[i][i] / sum(confusion[i]))
            column = sum(row[i] for row in confusion)
            self.assertAlmostEqual(of_class["precision"] or 0, confusion[i][i] / max(column, 1))
        self.assertEqual(found["classes"][7]["class"], "sneaker")
        page = (pathlib.Path(__file__).resolve().parent.parent / "docs/command-line.md").read_text(encoding="utf-8")
        table = page.split("### `arenite evaluate --json`")[1].split("\n### ")[0]
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE), list(found))

    def test_other_images(self):
        found = json.loads(self.good("evaluate", self.file, "--json", "--images", "training", "--limit", "77",
                                     "--dataset", "synthetic"))
        self.assertEqual((found["of"], found["images"]), ("training", 77))

    def test_picture(self):
        picture = self.root / "confusion.svg"
        self.good("evaluate", self.file, "--svg", str(picture))
        root = xml.etree.ElementTree.parse(picture).getroot()
        titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(len(titles), 100)
        self.assertRegex(titles[0], r"^\d+ of \d+ images of class T-shirt taken for T-shirt$")

    def test_bad_input(self):
        self.bad("nothing.st: cannot open it: No such file or directory; expected a readable file", "evaluate",
                 str(self.root / "nothing.st"))
        self.bad("run.st: input 'images' float32 [64, 28, 28, 1]; expected real numbers, 3072 of each image of "
                 "[32, 32, 3]; an integer, its label; or 'sample_weight', what it counts".removeprefix("run.st: "),
                 "evaluate", self.file, "--dataset", "synthetic-color")
        content = bytearray(pathlib.Path(self.file).read_bytes())
        content[len(content) // 2] ^= 4
        done = run("evaluate", self.put("flipped.st", content))
        self.assertEqual(done.returncode, 2)
        self.assertIn("flipped.st", done.stderr)


class Predict(Networks):
    def test_many_kinds_of_files(self):
        """One image is taken for the same, wherever it comes from."""
        expected = self.predicted(self.put("all.idx", idx((70, SIDE, SIDE), b"".join(self.images))))
        self.assertEqual([line["image"] for line in expected], list(range(70)))
        for line in expected:
            self.assertEqual(len(line["classes"]), 3)
            shares = [guess["share"] for guess in line["classes"]]
            self.assertEqual(shares, sorted(shares, reverse=True))
        classes = [line["classes"] for line in expected]
        first = self.images[0]
        for name, content in {
                "grey.png": png(self.rows(first)),
                "colour.png": png([bytes(v for pixel in row for v in (pixel,) * 3) for row in self.rows(first)], 2),
                "sixteen.png": png([bytes(v for pixel in row for v in (pixel,) * 2) for row in self.rows(first)], 0, 16),
                "opaque.png": png([bytes(v for pixel in row for v in (pixel, 255)) for row in self.rows(first)], 4),
                "cover.png": png([bytes(v for pixel in row for v in (*(pixel,) * 3, 255)) for row in self.rows(first)], 6),
                "flat.npy": npy("|u1", (SIDE, SIDE), first),
                "channel.npy": npy("|u1", (SIDE, SIDE, 1), first),
                "batch.npy": npy("|u1", (1, SIDE, SIDE, 1), first),
                "packed.idx.gz": gzip.compress(idx((1, SIDE, SIDE), first))}.items():
            found = self.predicted(self.put(name, content))
            self.assertEqual([(line["file"], line["classes"]) for line in found],
                             [(str(self.root / name), classes[0])], name)
        reals = npy("<f4", (2, SIDE, SIDE), struct.pack(f"<{2 * SIDE * SIDE}f", *(v / 255 for v in first + self.images[1])))
        mixed = self.predicted(self.put("reals.npy", reals), str(self.root / "grey.png"), str(self.root / "all.idx"))
        self.assertEqual(len(mixed), 73)
        self.assertEqual([line["classes"] for line in mixed[2:]], [classes[0], *classes])
        for found, wanted in zip(mixed[:2], classes):
            self.assertEqual(found["classes"][0]["label"], wanted[0]["label"])
            self.assertAlmostEqual(found["classes"][0]["share"], wanted[0]["share"], 4)

    def test_words(self):
        words = self.good("predict", self.file, self.put("a.png", png(self.rows(self.images[0]))), "--top", "1")
        self.assertRegex(words, r"^\S*/a\.png: [a-zA-Z -]+ \d+\.\d %\n$")
        many = self.good("predict", self.file, self.put("two.npy", npy("|u1", (2, SIDE, SIDE), self.images[0] * 2)))
        self.assertRegex(many, r"^\S*/two\.npy\[0\]: (\S.* %)\n\S*/two\.npy\[1\]: \1\n$")

    def test_bad_input(self):
        size = ("expected images of 28 rows and 28 columns, in grey, as the network takes (hint: bring them to that "
                "size before)")
        rows = self.rows(self.images[0])
        self.bad(f"wide.png: a picture of 28 rows and 29 columns; {size}", "predict", self.file,
                 self.put("wide.png", png([row + b"\0" for row in rows])))
        self.bad(f"small.npy: an array [3, 3]; {size}", "predict", self.file,
                 self.put("small.npy", npy("|u1", (3, 3), bytes(9))))
        self.bad(f"labels.npy: an array of int64; expected bytes, or real numbers as they are", "predict", self.file,
                 self.put("labels.npy", npy("<i8", (SIDE, SIDE), bytes(8 * SIDE * SIDE))))
        self.bad("clear.png: a picture that is transparent; expected one that is not (hint: nobody knows what lies "
                 "behind it)", "predict", self.file,
                 self.put("clear.png", png([bytes(4 * SIDE)] * SIDE, 6)))
        self.bad("text: a file that is none of these; expected a PNG picture, an IDX file or an array of NumPy's (.npy)",
                 "predict", self.file, self.put("text", b"shirt"))
        self.bad("--top 11; expected at most the 10 classes of the network", "predict", self.file,
                 self.put("a.png", png(rows)), "--top", "11")
        self.bad("no IMAGE; expected a path (hint: see arenite predict --help)", "predict", self.file)
        # Whatever a picture's bytes are.
        whole = bytearray(png(rows))
        chance = random.Random(5)
        for i in range(3 if cli_testing.SANITIZER else 25):
            damaged = bytearray(whole)
            if i % 2 == 0:
                del damaged[chance.randrange(8, len(whole)):]
            else:
                damaged[chance.randrange(8, len(whole))] ^= 1 << chance.randrange(8)
            done = run("predict", self.file, self.put("damaged.png", damaged))
            self.assertIn(done.returncode, (0, 2), done.stderr)


class Scripts(Networks):
    def test_a_network_of_ones_own(self):
        script, file = self.put("net.arenite", SCRIPT.encode()), str(self.root / "own.st")
        arguments = ("--script", script, "--limit", "900", "--epochs", "3", "--validation", "0.2", "--save", file)
        without = ("--model",)
        done = subprocess.run([cli_testing.COMMAND, *cli_testing.small(*arguments, without=without)], text=True,
                              capture_output=True, env=cli_testing.clean_environment(), timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"720 training and 1000 test images")
        self.assertRegex(done.stdout, r"epoch 3/3  loss .*  train accuracy .*  validation accuracy .* %")
        accuracy = re.search(r"test accuracy: (.*) %", done.stdout)[1]
        self.assertIn(f"accuracy {accuracy} %", self.good("evaluate", file))
        # The file has the network itself, from which one may go on.
        own = self.put("again.arenite", self.good("show", file, "--script").encode())
        again = cli_testing.small(*arguments, without=without)
        again[again.index(script)] = own
        again[again.index(file)] = str(self.root / "again.st")
        same = subprocess.run([cli_testing.COMMAND, *again], text=True, capture_output=True,
                              env=cli_testing.clean_environment(), timeout=600)
        self.assertEqual(same.returncode, 0, same.stderr)
        sha = re.compile("weights sha256: .*")
        self.assertEqual(sha.search(same.stdout)[0], sha.search(done.stdout)[0])

    def test_steps_may_be_on_a_known_number_of_samples(self):
        """Such a run has its network, too, for whole batches; a mark of an editor is no part of a script."""
        file, whole = str(self.root / "known.st"), SCRIPT.replace("N<=100", "50").replace("[N]", "[50]")
        script = self.put("known.arenite", b"\xef\xbb\xbf" + whole.replace("divisor=N", "divisor=50").encode())
        small = cli_testing.small("--script", script, "--save", file, "--epochs", "1", without=("--model", "--limit"))
        for limit in "400", "430":
            done = subprocess.run([cli_testing.COMMAND, *small, "--limit", limit], text=True, capture_output=True,
                                  env=cli_testing.clean_environment(), timeout=600)
            self.assertEqual(done.returncode, 0 if limit == "400" else 2, done.stderr)
        self.assertIn("a step on 30 samples; expected 50 (hint: inputs [N<=50, …] take any number up to that)", done.stderr)
        self.assertIn("250 test images", self.good("evaluate", file, "--limit", "250"))
        self.assertIn("InputTensor(pixels, float32, [50, 784])", self.good("show", file, "--script"))
        self.bad("known.st: a step on 20 samples; expected 50 (hint: inputs [N<=50, …] take any number up to that)", "evaluate", file, "--limit", "120")

    def test_numbers_of_an_optimizer_may_be_whole(self):
        """As a text has them; and those that it leaves out are told as well."""
        by = "optimizer=adamw, beta1=0, group(rank=1, weight_decay=0), learning_rate=1"
        script = self.put("whole.arenite", SCRIPT.replace("optimizer=adam, learning_rate=0.002", by).encode())
        arguments = [cli_testing.COMMAND, *cli_testing.small("--script", script, "--limit", "200", without=("--model",))]
        for more in (), ("--json",):
            done = subprocess.run([*arguments, *more], text=True, capture_output=True,
                                  env=cli_testing.clean_environment(), timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            if not more:
                self.assertIn("optimizer adamw: lr 1, beta1 0, beta2 0.999, eps 1e-08, weight_decay 0.01; of at most "
                              "1 axes: weight_decay 0\n", done.stdout)
        model = next(event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "model")
        self.assertEqual(model["numbers"], {"beta1": 0, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01})
        self.assertEqual(model["weight_decay"], 0.01)
        self.assertEqual(model["groups"], [{"names": "", "rank": 1, "rate": 1, "numbers": {"weight_decay": 0}}])

    def test_json(self):
        done = train("--json", "--validation", "0.5", "--limit", "200")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        epoch = next(event for event in events if event["event"] == "epoch")
        self.assertEqual(epoch["samples"], 100)
        self.assertIn("validation_accuracy", epoch)
        self.assertNotIn("test_accuracy", epoch)
        self.assertGreater(events[-1]["test_accuracy"], 0)

    def test_bad_input(self):
        script = self.put("net.arenite", SCRIPT.encode())
        self.bad("--script together with --lr; expected one of them (hint: see arenite train --help)", "train",
                 "--script", script, "--lr", "1")
        self.bad("net.arenite: a step on 101 samples; expected at most 100 (hint: inputs [N<=101, …] take any number up to that)", "train",
                 "--dataset", "synthetic", "--script", script, "--batch", "101")
        self.bad("nothing: cannot read it: No such file or directory; expected a script", "train", "--script",
                 str(self.root / "nothing"))
        self.bad("--validation 0.5 of 1 image; expected 2 images or more", *cli_testing.small(
            "--validation", "0.5", "--limit", "1"))
        self.bad("--validation: '1'; expected a number above 0 and below 1 (hint: see arenite train --help)", "train",
                 "--validation", "1")


if __name__ == "__main__":
    cli_testing.main()

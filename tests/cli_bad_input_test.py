#!/usr/bin/env python3
"""`arenite train` on wrong arguments and damaged data. Usage: cli_bad_input_test.py COMMAND [SANITIZER]

Each case ends with status 2 and one line that says what was found, what was expected and where; no
step is trained, and all files are what they were before."""
import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

import cli_testing
from cli_testing import idx, run, small, train

IMAGES, LABELS = cli_testing.NAMES["train"]
TEST_IMAGES, TEST_LABELS = cli_testing.NAMES["test"]
HELP = " (hint: see arenite train --help)"
HUGE = "99999999999999999999999"
WHOLE = {"--seed": "a whole number of 0 to 2^64 - 1", "--epochs": "a whole number of 0 to 1000000",
         "--batch": "a whole number of 1 to 1048576", "--workers": "a whole number of 1 to 1024",
         "--lanes": "a whole number of 1 to 64", "--accumulate": "a whole number of 1 to 64", "--limit": "a whole number of at least 1"}
REAL = {"--lr": "a finite number of at least 0, as float32 has it", "--weight-decay": "a finite number of at least 0, as float32 has it",
        "--momentum": "a number from 0 to below 1", "--clip-norm": "a finite number of at least 0, as float32 has it",
        "--clip-value": "a finite number of at least 0, as float32 has it", "--ema": "a number above 0 and below 1"}
OPTIMIZERS = ("adadelta, adagrad, adam, adam_amsgrad, adamw, adamw_amsgrad, lamb, lion, rms_prop, rms_prop_centered, "
              "rms_prop_centered_momentum, rms_prop_momentum, sgd, sgd_dampened, sgd_nesterov")
NAMES = {"--model": "one of mlp, cnn1, lenet5, cnn2, cnn2-bn, vgg-small",
         "--dataset": "one of fashion-mnist, mnist, synthetic, synthetic-color",
         "--shuffle": "one of on, off", "--fuse": "one of on, off", "--arenas": "one of overlay, two",
         "--compute": "one of float32, bfloat16, tfloat32", "--cuda-graphs": "one of on, off",
         "--device": "cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu",
         "--memory": "bytes, as in 4096, 64MiB or 1.5GiB",
         "--init": "default, or uniform:A with a finite A above 0, as in uniform:0.1",
         "--optimizer": f"one of {OPTIMIZERS}", "--schedule": "a schedule",
         "--group": "PATTERN:NAME=X,… or rank=N:NAME=X,…, as in '*.bias:weight_decay=0'", "--check-loss": "one of on, off",
         "--opt": "NAME=X with a finite number, as in beta1=0.8"}
PATHS = ("--data", "--kernels", "--log", "--plan-svg", "--plan-json")


class BadInput(unittest.TestCase):
    maxDiff = None

    def refused(self, done, message):
        self.assertEqual(done.stderr, f"arenite: {message}\n")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")


class Arguments(BadInput):
    def test_numbers(self):
        cases = [(option, text) for option in WHOLE
                 for text in ("-1", HUGE, "", "1.5", "nan", "0x10", "7seven", " 1", "1 ", "+1", "1e3")]
        cases += [(option, "0") for option in ("--batch", "--workers", "--lanes", "--limit")]
        cases += [(option, text) for option in REAL
                  for text in ("-1", "-1e-30", "nan", "inf", "-inf", "", "1e300", "9" * 400, "fast", "0.1x", "0x1p-3")]
        cases += [("--momentum", "1"), ("--momentum", "0.999999999999"), ("--epochs", "1000001"),
                  ("--batch", str((1 << 20) + 1)), ("--lanes", "65"), ("--workers", "1025"),
                  ("--seed", str(1 << 64)), ("--limit", str(1 << 63))]
        for option, text in cases:
            with self.subTest(option=option, text=text):
                self.refused(train(option, text),
                             f"{option}: '{text}'; expected {(WHOLE | REAL)[option]}{HELP}")

    def test_names(self):
        cases = [("--model", "cnn_1"), ("--model", ""), ("--dataset", "fashion_mnist"),
                 ("--dataset", "FASHION-MNIST"), ("--shuffle", "maybe"), ("--fuse", "ON"),
                 ("--arenas", "overlap"), ("--arenas", ""),
                 ("--compute", "bf16"), ("--compute", "BFLOAT16"), ("--compute", "float16"), ("--compute", "tf32"), ("--compute", "")]
        cases += [("--device", text) for text in ("gpu", "", "cuda:", "cuda:x", "cuda:-1", "cuda:0+", "+cpu", "CUDA", "cpu cuda")]
        cases += [("--memory", text) for text in ("", "0", "-1", "12q", "1e3", "MiB", "nan", "1 GiB", "9" * 40, "0.1")]
        cases += [("--cuda-graphs", "yes"), ("--optimizer", "adan"), ("--optimizer", ""), ("--schedule", "")]
        cases += [("--opt", text) for text in ("", "beta1", "=1", "beta1=", "beta1=x", "beta1=-1", "beta1=inf", "beta1=1 ")]
        cases += [("--group", text) for text in ("", "x", "x:", ":rate=1", "x:rate", "x:rate=-1", "x:rate=1,", "x:rate=1,,a=1",
                                                 "rank=9:rate=1", "rank=x:rate=1", "rank=0.5:rate=1", "x:a=1,a=2")]
        cases += [("--check-loss", "yes")]
        cases += [("--init", text) for text in ("uniform:", "uniform:0", "uniform:-1", "uniform:nan", "uniform:inf",
                                                "uniform:1x", "uniform:1e-60", "uniform", "", "normal:1")]
        for option, text in cases:
            with self.subTest(option=option, text=text):
                guess = {"cnn_1": " (did you mean 'cnn1'?)", "fashion_mnist": " (did you mean 'fashion-mnist'?)",
                         "float16": " (did you mean 'bfloat16'?)",
                         "adan": " (did you mean 'adam'?)"} | {
                             word: f" (did you mean '{word.lower()}'?)" for word in ("FASHION-MNIST", "ON", "BFLOAT16")}
                self.refused(train(option, text),
                             f"{option}: '{text}'{guess.get(text, '')}; expected {NAMES[option]}{HELP}")

    def test_optimizers(self):
        for arguments, message in (
                (("--optimizer", "adam", "--momentum", "0.9"),
                 "adam: unknown attribute 'momentum'; expected one of weight_decay, beta1, beta2, eps"),
                (("--optimizer", "adam", "--opt", "beta1=1"), "adam: beta1=1.0; expected a number from 0 to below 1"),
                (("--optimizer", "adam", "--opt", "beta1=0.5", "--opt", "beta1=0.6"),
                 "a second 'beta1' of the optimizer; expected each number once"),
                (("--momentum", "0.5", "--opt", "momentum=0.6"),
                 "a second 'momentum' of the optimizer; expected each number once"),
                (("--schedule", "cosin"),
                 "schedule 'cosin'; expected one of constant, cosine, cosine_restarts, exponential, linear, multi_step, "
                 "one_cycle, polynomial, staircase, triangle (hint: did you mean 'cosine'?)"),
                (("--schedule", "cosine:warm=3"),
                 "schedule 'cosine' with 'warm'; expected numbers steps, least = 0, warm_up = 0"),
                (("--schedule", "cosine:least"),
                 "--schedule cosine:least; expected NAME, or NAME:NUMBER=X,… with each number once, finite and at least 0 "
                 "(hint: lists of steps are written as at=30/80)"),
                (("--schedule", "exponential"), "schedule 'exponential' without 'gamma'; expected numbers gamma")):
            with self.subTest(arguments=arguments):
                self.refused(train(*arguments), message)

    def test_products_that_only_gpus_have(self):
        done = train("--compute", "tfloat32", "--model", "cnn1", "--dataset", "synthetic")
        self.refused(done, "products in tfloat32 on the CPU; expected float32 or bfloat16 "
                           "(hint: TF32 is what tensor cores of GPUs multiply)")

    def test_devices_that_are_not_there(self):
        if "no device" not in run("--version").stdout:
            self.skipTest("there is a GPU")
        for device in ("cuda", "cuda:7", "cpu+cuda"):
            done = train("--device", device, "--model", "cnn1", "--dataset", "synthetic")
            gpu = device.split("+")[-1]
            self.assertRegex(done.stderr, rf"^arenite: device '{gpu}', but [^;]+; expected one of cpu")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = train("--device", "cpu+cpu", "--model", "cnn1", "--dataset", "synthetic")
        self.refused(done, "device 'cpu' twice in 'cpu+cpu'; expected each device once")

    def test_form(self):
        for text, guess in (("trian", "did you mean 'train'?"), ("doctro", "did you mean 'doctor'?"),
                            ("--batch", "it is an option of train: arenite train --batch"),
                            ("--capacity=3", "it is an option of plan: arenite plan --capacity"),
                            ("--versoin", "did you mean '--version'?"), ("--hlep", "did you mean '--help'?"),
                            ("-x", ""), ("-", ""), ("", ""), ("extraordinary", "")):
            with self.subTest(text=text):
                guess = f" ({guess})" if guess else ""
                self.refused(run(text), f"unknown subcommand or option '{text}'{guess}; expected one of train, evaluate, "
                             "predict, plan, show, doctor, "
                                        "completion, version (hint: see arenite --help)")
        for text, guess in (("--epoch", "--epochs"), ("--epoch=3", "--epochs"), ("--modle", "--model"), ("epochs", "--epochs"),
                            ("--no-log", "--log"), ("extra", ""), ("train", ""), ("-x", ""), ("-", ""), ("--lengthy", "")):
            with self.subTest(text=text):
                guess = f" (did you mean '{guess}'?)" if guess else ""
                self.refused(train(text), f"unknown argument '{text}'{guess}; expected options of train{HELP}")
        self.refused(train("--", "--batch"), f"unknown argument '--batch'; expected options of train{HELP}")
        for option, expected in (WHOLE | REAL | NAMES | dict.fromkeys(PATHS, "a path")).items():
            with self.subTest(option=option):
                self.refused(train(option), f"{option}: no value; expected {expected}{HELP}")
        self.refused(train("--batch", "8", "--batch=9"), f"--batch: given 2 times; expected once{HELP}")
        self.refused(train("--explain=often"), f"--explain: a value; expected none{HELP}")

    def test_empty_paths(self):
        for option in PATHS:
            self.refused(train(option, ""), f"{option}: ''; expected a path{HELP}")

    def test_kernels_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "kernels.json"
            what = "kernel choices, as gpu_kernels --choose writes them"
            self.refused(train("--kernels", file), f"{file}: cannot read it: No such file or directory; expected {what}")
            file.write_text("{}")
            self.refused(train("--kernels", file), f"{file}: no field 'format'; expected one")
            op = "softmax_cross_entropy(float32 [8, 10], int32 [8], divisor=8)"
            file.write_text(json.dumps({"format": "arenite kernel choices 1", "measured_on": "", "choices": [
                {"op": op, "device": "cpu", "compute": "float32", "kernel": "quick"}]}))
            self.refused(train("--kernels", file, "--model", "cnn1", "--dataset", "synthetic", "--batch", "8", "--lanes", "1"),
                         f"{file}: kernel 'quick' chosen for {op}; expected one of this build's kernels (hint: measure anew: "
                         "these choices are of another version, or of one with other libraries)")
            self.assertIn("same file", train("--kernels", file, "--log", file).stderr)

    def test_any_variable_of_starpus(self):
        """What it cannot read ends the process within StarPU, so that nothing of it may get there."""
        if cli_testing.SANITIZER:
            self.skipTest("a hundred processes, and nothing of ours is run")
        libraries = [line.split()[2] for line in subprocess.run(["ldd", cli_testing.COMMAND], capture_output=True, text=True,
                                                                check=True).stdout.splitlines() if "libstarpu" in line]
        names = {name.decode() for library in libraries
                 for name in re.findall(rb"(?<=\0)STARPU_[A-Z][A-Z0-9_]*(?=\0)", pathlib.Path(library).read_bytes())}
        self.assertGreater(len(names), 50)
        folder = tempfile.TemporaryDirectory()  # some name a file to write
        self.addCleanup(folder.cleanup)
        for name in sorted(names - {"STARPU_PATH", "STARPU_PERF_MODEL_PATH"}):
            with self.subTest(name=name):
                done = run("train", "--dataset", "synthetic", "--model", "mlp", "--epochs", "0", "--limit", "64",
                           cwd=folder.name, **{name: "zz"})
                self.assertIn(done.returncode, (0, 2), done.stderr)

    def test_environment(self):
        # Without --workers the environment counts, and must be a number.
        workers = "a number of workers of at least 1 (hint: an explicit number of workers (--workers) wins over it)"
        processors = "numbers and ranges of processors, as in '0 2-3'"
        for name, text, expected in [("STARPU_NCPU", "abc", workers), ("STARPU_NCPU", "0", workers),
                                     ("STARPU_NCPU", "-2", workers), ("STARPU_WORKERS_CPUID", "x", processors),
                                     ("STARPU_WORKERS_CPUID", "3-1", processors),
                                     ("STARPU_CALIBRATE", "yes", "a whole number"),
                                     ("STARPU_LIMIT_CPU_MEM", "1G", "a whole number"),
                                     ("STARPU_WATCHDOG_TIMEOUT", "soon", "a number")]:
            with self.subTest(name=name, text=text):
                self.refused(run(*small(without=["--workers"]), **{name: text}),
                             f"{name}='{text}'; expected {expected}")


class Data(BadInput):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.set = cli_testing.write_set(self.root / "set")

    def train(self, *arguments, **more):
        return train("--dataset", "mnist", "--data", str(self.set), *arguments,
                     ARENITE_CACHE=str(self.root / "cache"), **more)

    def damaged(self, message, *arguments, **more):
        """Refused with the message, in which {} stands for the set's folder."""
        outputs = ("--log", str(self.root / "log"), "--plan-svg", str(self.root / "svg"))
        before = cli_testing.snapshot(self.root)
        self.refused(self.train(*arguments, *outputs, **more), message.replace("{}", str(self.set)))
        self.assertEqual(cli_testing.snapshot(self.root), before)

    def edit(self, name, change):
        path = self.set / name
        path.write_bytes(change(path.read_bytes()))

    def pack(self, name, change=lambda packed: packed, plain=lambda content: content):
        """Puts a compressed file in the plain one's place; the time is left out of it, so that offsets stay."""
        path = self.set / name
        (self.set / (name + ".gz")).write_bytes(change(gzip.compress(plain(path.read_bytes()), mtime=0)))
        path.unlink()

    def test_a_set_that_is_right(self):
        for packed in (False, True):
            self.set = cli_testing.write_set(self.root / str(packed), packed=packed)
            done = self.train("--batch", "4")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("20 training and 10 test images of [4, 4, 1]", done.stdout)

    def test_truncated(self):
        for name, size, message in [
                (IMAGES, 10, "byte 10: the file ends after 10 bytes; expected a header of 16 bytes"),
                (IMAGES, 3, "byte 3: the file ends after 3 bytes; expected a header of 16 bytes"),
                (IMAGES, 100, "byte 100: a file of 100 bytes; expected 336 bytes: 16 of header and [20, 4, 4] elements "
                              "(hint: the file is cut short)"),
                (TEST_LABELS, 17, "byte 17: a file of 17 bytes; expected 18 bytes: 8 of header and [10] elements "
                                  "(hint: the file is cut short)")]:
            with self.subTest(name=name, size=size):
                whole = (self.set / name).read_bytes()
                self.edit(name, lambda content: content[:size])
                self.damaged(f"{{}}/{name}, {message}")
                (self.set / name).write_bytes(whole)
        self.edit(IMAGES, lambda content: b"")
        self.damaged(f"{{}}/{IMAGES}: the file is empty; expected an IDX or gzip file")

    def test_oversized(self):
        self.edit(IMAGES, lambda content: content + b"xyz")
        self.damaged(f"{{}}/{IMAGES}, byte 336: a file of 339 bytes; expected 336 bytes: 16 of header and "
                     "[20, 4, 4] elements (hint: the file has trailing bytes)")
        self.edit(LABELS, lambda content: idx((1 << 31,), content[8:]))
        self.damaged(f"{{}}/{LABELS}, byte 28: a file of 28 bytes; expected 2147483656 bytes: 8 of header and "
                     "[2147483648] elements (hint: the file is cut short)")
        self.edit(LABELS, lambda content: idx((20,), content[8:]))
        for dims in ((1 << 31, 1 << 31, 2), (20, (1 << 32) - 1, (1 << 32) - 1)):
            self.edit(IMAGES, lambda content: idx(dims, content[16:]))
            self.damaged(f"{{}}/{IMAGES}, byte 8: dimension 1 is {dims[1]}; expected at most 4294967296 elements in all")
        self.edit(IMAGES, lambda content: idx((20, 0, 4), content[16:]))
        self.damaged(f"{{}}/{IMAGES}, byte 8: dimension 1 is 0; expected at least 1")
        with open(self.set / IMAGES, "wb") as sparse:
            sparse.truncate((1 << 32) + 1)
        # Without a snapshot of these 4 GiB of holes.
        self.refused(self.train(),
                     f"{self.set}/{IMAGES}: a file of 4294967297 bytes; expected at most 4294967296 bytes")

    def test_wrong_magic(self):
        for at, byte, message in [
                (0, 0x89, "the magic number has 0x89; expected 0x00: an IDX file starts with two zero bytes"),
                (1, 0x50, "the magic number has 0x50; expected 0x00: an IDX file starts with two zero bytes"),
                (2, 0x0d, "type code 0x0d; expected 0x08, unsigned bytes"),
                (3, 0x04, "rank 4; expected rank 3 (images) (hint: are the images' and the labels' files swapped?)")]:
            with self.subTest(at=at):
                whole = (self.set / IMAGES).read_bytes()
                self.edit(IMAGES, lambda content: content[:at] + bytes([byte]) + content[at + 1:])
                self.damaged(f"{{}}/{IMAGES}, byte {at}: {message}")
                (self.set / IMAGES).write_bytes(whole)
        self.edit(IMAGES, gzip.compress)
        self.damaged(f"{{}}/{IMAGES}, byte 0: gzip data under a name without .gz; expected an IDX file, which starts "
                     "with two zero bytes (hint: add .gz to its name, or unpack it)")

    def test_files_that_do_not_fit_together(self):
        self.edit(LABELS, lambda content: idx((19,), content[8:27]))
        self.damaged(f"{{}}/{LABELS}, byte 4: 19 labels for 20 images; expected one label an image")
        self.edit(LABELS, lambda content: idx((20,), [1] * 20))
        self.edit(TEST_IMAGES, lambda content: idx((10, 5, 4), [1] * 200))
        self.damaged(f"{{}}/{TEST_IMAGES}, byte 8: test images of [5, 4, 1]; expected the training images' [4, 4, 1]")
        (self.set / IMAGES).rename(self.set / "other")
        (self.set / LABELS).rename(self.set / IMAGES)
        (self.set / "other").rename(self.set / LABELS)
        self.damaged(f"{{}}/{LABELS}, byte 3: rank 3; expected rank 1 (labels) (hint: are the images' and the labels' "
                     "files swapped?)")

    def test_a_flipped_bit(self):
        self.edit(LABELS, lambda content: content[:13] + bytes([content[13] ^ 0x80]) + content[14:])
        self.damaged(f"{{}}/{LABELS}, byte 13: label 133; expected 0 to 9")
        self.edit(LABELS, lambda content: idx((20,), [1] * 20))
        fetch = "compare its SHA-256 with the publisher's, or fetch it again"
        for name, at in ((IMAGES, 60), (TEST_IMAGES, -8)):  # in the data, and in the checksum
            whole = (self.set / name).read_bytes()
            flip = lambda packed: packed[:at] + bytes([packed[at] ^ 1]) + packed[at:][1:]
            self.pack(name, flip)
            size = (self.set / (name + ".gz")).stat().st_size
            self.damaged(f"{{}}/{name}.gz, byte {size - 4}: corrupt gzip data: incorrect data check; expected intact "
                         f"gzip data (hint: {fetch})")
            (self.set / (name + ".gz")).unlink()
            (self.set / name).write_bytes(whole)
        self.pack(IMAGES, lambda packed: b"\x1f\x8c" + packed[2:])
        self.damaged(f"{{}}/{IMAGES}.gz, byte 2: corrupt gzip data: incorrect header check; expected intact gzip data "
                     f"(hint: {fetch})")

    def test_compressed(self):
        path, whole = self.set / IMAGES, (self.set / IMAGES).read_bytes()

        def packed_case(message, **how):
            self.pack(IMAGES, **how)
            size = (self.set / (IMAGES + ".gz")).stat().st_size
            self.damaged(message.replace("{file}", f"{{}}/{IMAGES}.gz").replace("{size}", str(size)))
            (self.set / (IMAGES + ".gz")).unlink()
            path.write_bytes(whole)

        packed_case("{file}, byte {size}: the file ends inside gzip member 1; expected the member's end and checksum "
                    "(hint: the download was cut short; fetch it again)", change=lambda packed: packed[:-20])
        packed_case("{file}: the file is empty; expected an IDX or gzip file", change=lambda packed: b"")
        packed_case("{file} (unpacked), byte 335: it unpacks to 335 bytes; expected 336 bytes, by its header of "
                    "[20, 4, 4] (hint: the file was cut short before it was compressed)", plain=lambda b: b[:-1])
        packed_case("{file} (unpacked), byte 3: the file ends after 3 bytes; expected a header of 16 bytes",
                    plain=lambda b: b[:3])
        packed_case("{file} (unpacked), byte 4: 33 compressed bytes for [60000, 200, 200] elements; expected at least 1 "
                    "for every 1032, gzip's limit (hint: the dimensions in the header are wrong)",
                    plain=lambda b: idx((60000, 200, 200), b""))
        self.pack(IMAGES, plain=lambda b: idx((20, 4, 4), b"") + bytes(64 << 20))
        done = self.train()
        self.assertRegex(done.stderr, r"^arenite: \S+\.gz, byte \d+: it unpacks to more than the 336 bytes its header "
                                      r"promises; expected a header and \[20, 4, 4\] elements \(hint: the file is "
                                      r"damaged, or made to fill the disk\)\n$")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(cli_testing.snapshot(self.root / "cache"), {})

    def test_a_full_cache(self):
        limit = 200  # the labels fit, the images do not
        self.set = cli_testing.write_set(self.root / "packed", packed=True)
        done = self.train(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertRegex(done.stderr, rf"\Aarenite: {self.root}/cache/unpacked/{IMAGES}-\S+: cannot write it: File too "
                                      r"large; expected room for 336 more bytes\n\Z")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertFalse([name for name in cli_testing.snapshot(self.root / "cache") if "images" in name])

    def test_what_is_no_file(self):
        path = self.set / IMAGES
        path.unlink()
        path.mkdir()
        self.damaged(f"{{}}/{IMAGES}: a folder; expected a regular file")
        path.rmdir()
        os.mkfifo(path)
        self.damaged(f"{{}}/{IMAGES}: a named pipe; expected a regular file")
        for target, reason in (("nowhere", "No such file or directory"),
                               (IMAGES, "Too many levels of symbolic links")):
            path.unlink()
            path.symlink_to(target)
            self.damaged(f"{{}}/{IMAGES}: cannot open it: {reason} (a link to {target}); expected a readable file")

    def test_wrong_folders(self):
        def four(folder):
            return ("expected the four IDX files of mnist (hint: fetch it, in Arenite's source: datasets/fetch --to "
                    f"{folder} mnist)")
        (self.set / IMAGES).unlink()
        self.damaged(f"{{}}: no file {IMAGES}[.gz] in this folder; {four(self.set)}")
        shutil.rmtree(self.set)
        self.damaged(f"{{}}: no such folder; {four(self.set)}")
        self.set.write_text("a file")
        self.damaged(f"{{}}: not a folder; expected the four IDX files of mnist (hint: name the folder they are in)")
        self.set = self.root
        self.damaged(f"{{}}: no file {LABELS}[.gz] in this folder; {four(self.set)}")

    def test_a_set_without_files_takes_no_folder(self):
        self.refused(train("--dataset", "synthetic-color", "--data", str(self.set)),
                     f"a folder for synthetic-color: {self.set}; expected none: the set is drawn in memory and has no "
                     "files (hint: name the data set that the folder holds)")

    def test_no_other_set_is_taken(self):
        cache = str(self.root / "cache")
        done = run(*small("--model", "cnn1", without=["--dataset"]), ARENITE_CACHE=cache,
                   ARENITE_DATASETS=str(self.root))
        self.refused(done, f"data set fashion-mnist is in none of the places looked in: {self.root}/fashion-mnist, "
                           f"{cache}/fashion-mnist; expected its four IDX files, plain or .gz (hint: fetch it, in "
                           "Arenite's source: datasets/fetch fashion-mnist; or set ARENITE_DATASETS to the folder above fashion-mnist/)")

    def test_unreadable(self):
        # Root may read everything: then somebody else has to try.
        other = {"preexec_fn": lambda: os.setuid(65534)} if os.getuid() == 0 else {}
        self.root.chmod(0o755)
        try:
            run("--version", **other)
        except PermissionError:
            self.skipTest("only root may run the command here")
        outputs = self.root / "outputs"
        outputs.mkdir()
        outputs.chmod(0o777)
        for path in (self.set, self.set / LABELS):
            with self.subTest(path=path.name):
                mode = path.stat().st_mode
                path.chmod(0)
                done = self.train("--log", str(outputs / "log"), **other)
                path.chmod(mode)
                self.refused(done, f"{self.set}/{LABELS}: cannot open it: Permission denied; expected a readable file")
                self.assertEqual(cli_testing.snapshot(outputs), {})

    def test_a_batch_larger_than_the_set(self):
        larger = "expected a batch no larger than the set (hint: use a smaller --batch or a larger --limit)"
        self.damaged(f"a batch of 21 from 20 training samples; {larger}", "--batch", "21")
        self.damaged(f"a batch of 8 from 7 training samples; {larger}", "--batch", "8", "--limit", "7")

    def test_an_unsound_layout(self):
        self.damaged("arena layout 'reset': 2 values cross from forward to backward (dense1, dense2); "
                     "expected none: one block with a full reset between the phases would destroy them (hint: use the "
                     "layout 'overlay' (one block, sound) or 'two')", "--arenas", "reset", "--batch", "10", "--lanes", "1")


if __name__ == "__main__":
    cli_testing.main()

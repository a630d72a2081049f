#!/usr/bin/env python3
"""flake.nix: parsed, and evaluated with a stub in the place of nixpkgs (tests/nix/stub), so that no network is needed.
Without nix only what needs none is tested, and it ends with status 77. Usage: nix_test.py [Pages]"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import scripts_test

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYSTEM = "x86_64-linux"
PACKAGES = {"default", "arenite", "arenite-cuda", "arenite-native", "arenite-v3", "arenite-v4", "fxt", "starpu",
            "starpu-cuda", "train"}
SHELLS = {"default", "cuda"}
APPS = {"default", "train"}
CHECKS = {"arenite", "unit-tests", "format", "docs"}
LEFT_OUT = {".git", ".cache", "build", "result", "results"}  # of the working tree
SRI = re.compile(r"sha256-[A-Za-z0-9+/]{43}=")

# What builders have of stdenv.
STAND_INS = r"""
patchShebangs() { :; }
makeWrapper() { printf '#!/bin/bash\nexec %q "$@"\n' "$1" >"$2"; chmod +x "$2"; }
substituteInPlace() {
  [[ $2 == --replace-fail ]]
  local text
  text=$(<"$1")
  [[ $text == *"$3"* ]] || { echo "$1: no '$3'" >&2; return 1; }
  echo "${text//"$3"/"$4"}" >"$1"
}"""


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


class Pages(unittest.TestCase):
    """What files say of each other."""

    page = read("docs/nix.md")
    lock = json.loads(read("flake.lock"))

    def test_every_input_is_locked(self):
        inputs = {name: node for name, node in self.lock["nodes"].items() if name != self.lock["root"]}
        self.assertEqual(set(inputs), {"nixpkgs"})
        self.assertEqual(self.lock["nodes"]["root"]["inputs"], {"nixpkgs": "nixpkgs"})
        locked, original = inputs["nixpkgs"]["locked"], inputs["nixpkgs"]["original"]
        self.assertRegex(locked["rev"], r"^[0-9a-f]{40}$")
        self.assertRegex(locked["narHash"], rf"^{SRI.pattern}$")
        self.assertIn(f'inputs.nixpkgs.url = "github:{original["owner"]}/{original["repo"]}/{original["ref"]}";',
                      read("flake.nix"))

    def test_the_page_says_what_is_pinned(self):
        locked = self.lock["nodes"]["nixpkgs"]["locked"]
        hashes = {hash for file in (ROOT / "nix").glob("*.nix") for hash in SRI.findall(file.read_text(encoding="utf-8"))}
        self.assertEqual(len(hashes), 2)  # FxT and StarPU
        for fact in {locked["rev"], locked["narHash"], *hashes}:
            self.assertTrue(fact in self.page, fact)

    def test_the_page_names_every_output(self):
        for name in (PACKAGES | SHELLS | APPS) - {"default"}:
            self.assertTrue(f"`.#{name}`" in self.page, name)
        named = set(re.findall(r"\.#([\w-]+)", self.page))
        self.assertEqual(named - PACKAGES - SHELLS - APPS, set())

    def test_starpu_is_configured_alike(self):
        options = re.compile(r"--(?:enable|disable)-[\w=-]+")
        shell = set(options.findall(read("scripts/build-starpu").split("local options=(")[1]))
        self.assertIn("--enable-maxbuffers=16", shell)
        self.assertEqual(set(options.findall(read("nix/starpu.nix"))), shell)

    def test_all_that_the_train_script_runs_is_in_its_tree(self):
        tree = read("nix/train.nix")
        for path in set(re.findall(r'"\$root/([\w/.-]+)"', read("scripts/train"))):
            folder, name = path.rsplit("/", 1)
            self.assertTrue(f"$tree/{path}\"" in tree or f"$tree/{folder}/$done\"" in tree and f" {name}" in tree, path)


@unittest.skipUnless(shutil.which("nix") and shutil.which("nix-instantiate"), "no nix on PATH")
class Flake(unittest.TestCase):
    """All of it is evaluated, down to the derivations, in a store of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        top = pathlib.Path(cls.folder.name).resolve()
        cls.store = top / "store"
        cls.environment = {k: v for k, v in os.environ.items() if not k.startswith(("NIX", "XDG_"))}
        cls.environment.update(HOME=str(top / "home"), NIX_CONFIG="experimental-features = nix-command flakes\n"
                               "build-users-group =")
        (top / "home").mkdir()
        cls.flake, cls.stub = cls.copy("flake"), top / "stub"
        shutil.copytree(ROOT / "tests/nix/stub", cls.stub)  # as an address: the repository's path may hold any letter
        (cls.flake / "build").mkdir()
        (cls.flake / "build/left_over").write_text("of a build by hand")

    @classmethod
    def copy(cls, name):
        """The working tree, for it may hold what is not committed yet."""
        target = pathlib.Path(cls.folder.name).resolve() / name
        made = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
        shutil.copytree(ROOT, target, ignore=lambda folder, names: made(folder, names) | (
            LEFT_OUT & set(names) if pathlib.Path(folder) in (ROOT, ROOT / "python") else set()))
        return target

    @classmethod
    def nix(cls, *arguments, flake=None, check=True):
        flake = flake or cls.flake
        command = ["nix", *arguments, "--offline", "--store", str(cls.store), "--no-write-lock-file",
                   "--override-input", "nixpkgs", f"path:{cls.stub}"]
        done = subprocess.run([word.replace("FLAKE", f"path:{flake}") for word in command], env=cls.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(arguments)}: {done.stderr}")
        return done

    @classmethod
    def evaluate(cls, output, apply):
        return json.loads(cls.nix("eval", "--json", f"FLAKE#{output}", "--apply", apply).stdout)

    def in_store(self, program, *arguments):
        return subprocess.run([program, "--store", str(self.store), *arguments], env=self.environment,
                              stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout

    def closure(self, derivation):
        """The names of all derivations and sources that one is made of."""
        return {path.split("-", 1)[1] for path in self.in_store("nix-store", "--query", "--requisites", derivation).split()}

    def stored(self, path):
        return self.store / path.lstrip("/")

    def test_every_file_is_parsed(self):
        files = [ROOT / "flake.nix", *(ROOT / "nix").glob("*.nix"), *(ROOT / "tests/nix").glob("**/*.nix")]
        self.assertGreater(len(files), 10)
        self.in_store("nix-instantiate", "--parse", *map(str, files))

    def test_the_whole_flake_is_evaluated(self):
        self.nix("flake", "check", "FLAKE", "--no-build")
        shown = json.loads(self.nix("flake", "show", "FLAKE", "--json").stdout)
        self.assertEqual({kind: {system: set(names) for system, names in systems.items()}
                          for kind, systems in shown.items() if kind != "formatter"},
                         {"packages": {SYSTEM: PACKAGES}, "devShells": {SYSTEM: SHELLS}, "apps": {SYSTEM: APPS},
                          "checks": {SYSTEM: CHECKS}})
        self.assertEqual(shown["formatter"][SYSTEM]["name"], "nixfmt-tree")

    def test_a_wrong_name_is_noticed(self):
        broken = self.copy("broken")
        for file, right, wrong, message in (
                ("shell.nix", "flamegraph", "flamegraf", "flamegraf"),
                ("arenite.nix", "cudaPackages_13.libcublas", "cudaPackages_13.cublas", "cublas"),
                ("arenite.nix", "cmakeBool", "cmakeBoolean", "cmakeBoolean"),
                ("arenite.nix", "  buildInputs = [", "  buildInput = [", "unknown argument buildInput"),
                ("starpu.nix", "6qWiw4cl0NtTsT4=", "6qWiw4cl0NtTsT=", "not a hash"),
                ("source.nix", "toSource {", "toSource' {", "toSource'"),
                ("default.nix", "allowUnfree = true", "allowUnfree = false", "unfree"),
                ("default.nix", 'march = "native"', 'marsh = "native"', "marsh")):
            path = broken / "nix" / file
            text = path.read_text()
            self.assertIn(right, text)
            path.write_text(text.replace(right, wrong))
            done = self.nix("flake", "check", "FLAKE", "--no-build", flake=broken, check=False)
            path.write_text(text)
            self.assertNotEqual(done.returncode, 0, wrong)
            self.assertIn(message, done.stderr)

    def test_the_stub_names_what_is_used(self):
        used = set(re.findall(r"[\w-]+", "".join(file.read_text() for file in (ROOT / "nix").glob("*.nix"))))
        for names in ("names", "cuda"):
            listed = json.loads(self.in_store(
                "nix-instantiate", "--eval", "--strict", "--json", "--expr",
                f"let names = import {self.stub}/{names}.nix; in "
                "if builtins.isList names then names else builtins.attrNames names"))
            self.assertEqual(set(listed) - used, set())

    def test_packages(self):
        packages = self.evaluate(f"packages.{SYSTEM}", """builtins.mapAttrs (_: package: {
          inherit (package) drvPath name;
          flags = package.cmakeFlags or package.configureFlags or [ ];
          native = package.NIX_ENFORCE_NO_NATIVE or null; })""")
        version = re.search(r"project\(arenite VERSION ([\d.]+)", read("CMakeLists.txt"))[1]
        self.assertEqual(packages["arenite"]["name"], f"arenite-{version}")
        self.assertEqual(packages["default"], packages["arenite"])
        for name, package in packages.items():
            cuda = name.endswith("-cuda")
            unfree = {part for part in self.closure(package["drvPath"]) if part.startswith("cuda13.0-")}
            self.assertEqual(bool(unfree), cuda, (name, unfree))
            if "arenite" in name or name == "default":
                level = re.search(r"-v\d$", name)
                self.assertEqual(set(package["flags"]), {
                    f"-DARENITE_NATIVE:BOOL={'TRUE' if name == 'arenite-native' else 'FALSE'}",
                    "-DARENITE_TESTS:BOOL=FALSE", "-DARENITE_BENCH:BOOL=FALSE",
                    f"-DARENITE_CUDA:STRING={'ON' if cuda else 'OFF'}"} | (
                        set() if name == "arenite-native" else
                        {f"-DCMAKE_CXX_FLAGS:STRING=-march=x86-64{level[0] if level else ''}"}))
                self.assertEqual(package["native"], "0" if name == "arenite-native" else None)
        self.assertIn("cuda13.0-cudnn.drv", self.closure(packages["arenite-cuda"]["drvPath"]))

    def test_starpu(self):
        patch = {}
        for name in ("starpu", "starpu-cuda"):
            starpu = self.evaluate(f"packages.{SYSTEM}.{name}",
                                   "starpu: { inherit (starpu) version drvPath configureFlags postPatch src; "
                                   "needs = map (input: input.name) starpu.arguments.propagatedBuildInputs; }")
            self.assertEqual(starpu["version"], "1.4.7")
            self.assertIn("hwloc", starpu["needs"])
            self.assertTrue(any(part.startswith("fxt-0.3.15") for part in self.closure(starpu["drvPath"])))
            self.assertRegex(starpu["configureFlags"][0], r"^--with-fxt=/nix/store/\w+-fxt-0\.3\.15$")
            self.assertIn("--enable-cuda" if name == "starpu-cuda" else "--disable-cuda", starpu["configureFlags"])
            patch[name] = starpu["postPatch"]
        self.assertEqual(patch["starpu"], "patchShebangs .\n")
        # The changes of scripts/build-starpu, on lines like StarPU's, and a failure where there is none.
        with tempfile.TemporaryDirectory() as folder:
            drivers = pathlib.Path(folder, "src/drivers/cuda")
            bus = pathlib.Path(folder, "src/core/perfmodel/perfmodel_bus.c")
            drivers.mkdir(parents=True), bus.parent.mkdir(parents=True)
            bus.write_text(scripts_test.BuildStarpu.BUS)
            for driver in ("driver_cuda.c", "driver_cuda1.c"):
                (drivers / driver).write_text("\tif (props[devid].computeMode == cudaComputeModeExclusive)\n\t{\n")
            run = ["bash", "-euc", f"{STAND_INS}\n{patch['starpu-cuda']}"]
            subprocess.run(run, cwd=folder, check=True)
            for driver in ("driver_cuda.c", "driver_cuda1.c"):
                self.assertEqual((drivers / driver).read_text(),
                                 "\tint compute_mode = 0;\n"
                                 "\tcures = cudaDeviceGetAttribute(&compute_mode, cudaDevAttrComputeMode, devid);\n"
                                 "\tif (STARPU_UNLIKELY(cures))\n\t\tSTARPU_CUDA_REPORT_ERROR(cures);\n"
                                 "\tif (compute_mode == cudaComputeModeExclusive)\n\t{\n")
            self.assertEqual(bus.read_text().rstrip("\n"), scripts_test.BuildStarpu.UNMEASURED.rstrip("\n"))
            self.assertNotEqual(subprocess.run(run, cwd=folder, stderr=subprocess.DEVNULL).returncode, 0)

    def test_shells(self):
        tools = self.evaluate(f"devShells.{SYSTEM}", """builtins.mapAttrs (_: shell: {
          inherit (shell) hardeningDisable NIX_ENFORCE_NO_NATIVE drvPath;
          has = map (tool: tool.name) (with shell.arguments; nativeBuildInputs ++ buildInputs ++ propagatedBuildInputs);
          })""")
        for name, shell in tools.items():
            for tool in ("bashInteractive", "cmake", "ninja", "ccache", "pkg-config", "clang", "clang-tools", "gdb", "valgrind", "perf",
                         "flamegraph", "hyperfine", "python3-env", "shellcheck", "nixfmt-tree", "gtest",
                         "gbenchmark", "libhwy", "libxsmm", "mpfr", "sleef", "hwloc", "starpu-cuda-1.4.7" if name == "cuda" else "starpu-1.4.7"):
                self.assertIn(tool, shell["has"])
            self.assertEqual("cuda13.0-cuda_nvcc" in shell["has"], name == "cuda")
            self.assertEqual("cuda13.0-nsight_systems" in shell["has"], name == "cuda")
            self.assertEqual((shell["hardeningDisable"], shell["NIX_ENFORCE_NO_NATIVE"]), (["all"], "0"))
            python = {f"python3-{part}.drv" for part in ("numpy", "pytest", "pip", "setuptools", "wheel")}
            self.assertLessEqual(python, self.closure(shell["drvPath"]))

    def test_sources(self):
        package = self.evaluate(f"packages.{SYSTEM}.arenite", "package: { inherit (package) src cmakeFlags; }")
        tests = self.evaluate(f"checks.{SYSTEM}.unit-tests", """check: {
          inherit (check) src cmakeFlags checkPhase;
          has = map (tool: tool.name) check.arguments.nativeCheckInputs; }""")
        source = self.stored(package["src"])
        self.assertEqual(set(os.listdir(source)) & {"tests", "bench", "flake.nix", "nix", "build"}, set())
        self.assertEqual(set(os.listdir(ROOT)) - set(os.listdir(self.stored(tests["src"]))) - LEFT_OUT, set())
        self.assertFalse((self.stored(tests["src"]) / "build").exists())
        self.assertIn("-DARENITE_TESTS:BOOL=TRUE", tests["cmakeFlags"])
        self.assertIn("ctest --label-regex '^unit$'", tests["checkPhase"])
        # In the builder there is neither /sys nor a bash with completion, and CMake's hook names folders in the store.
        self.assertIn("HWLOC_HIDE_ERRORS=2", tests["checkPhase"])
        self.assertLessEqual({"bashInteractive", "util-linux"}, set(tests["has"]))
        folders = {"BIN": "bin", "DOC": "share/doc/arenite", "INCLUDE": "include", "LIB": "lib"}
        self.assertLessEqual({f"-DCMAKE_INSTALL_{name}DIR:STRING={folder}" for name, folder in folders.items()},
                             set(tests["cmakeFlags"]))
        # They suffice: what CMake reads is all there.
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run(["cmake", "-S", source, "-B", build, *package["cmakeFlags"]],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_train_app_runs_the_train_script(self):
        apps = self.evaluate(f"apps.{SYSTEM}", "builtins.mapAttrs (_: app: { inherit (app) type program; "
                             "told = app.meta.description; })")
        self.assertRegex(apps["default"]["program"], r"-arenite-[\d.]+/bin/arenite$")
        self.assertRegex(apps["train"]["program"], r"-arenite-train/bin/arenite-train$")
        self.assertEqual({app["type"] for app in apps.values()}, {"app"})
        with tempfile.TemporaryDirectory() as folder:
            arenite = pathlib.Path(folder, "arenite")
            arenite.write_text('#!/bin/sh\necho "$@"\n')
            arenite.chmod(0o755)
            build = self.evaluate(f"packages.{SYSTEM}.train", "train: train.buildCommand")
            build = re.sub(r"/nix/store/\S+/bin/bash", "/bin/bash", build)
            build = re.sub(r"/nix/store/\S+/bin/arenite\b", str(arenite), build)
            build = build.replace("/nix/store/", f"{self.store}/nix/store/")
            subprocess.run(["bash", "-euc", f"out={folder}/out\nmkdir -p $out/bin\n{STAND_INS}\n{build}"], check=True)
            data = pathlib.Path(folder, "fashion-mnist")
            data.mkdir()
            for part in ("train", "t10k"):
                for kind in ("images-idx3", "labels-idx1"):
                    (data / f"{part}-{kind}-ubyte").touch()
            environment = {**self.environment, "ARENITE_DATASETS": folder}
            for arguments, expected in ((["--dataset", "synthetic"], "train --dataset synthetic\n"),
                                        (["--epochs", "2"], f"Data: Fashion-MNIST in {data}\n"
                                         "train --dataset fashion-mnist --epochs 2\n")):
                done = subprocess.run([f"{folder}/out/bin/arenite-train", *arguments], env=environment,
                                      stdout=subprocess.PIPE, text=True, timeout=120, check=True)
                self.assertEqual(done.stdout, expected)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if result.wasSuccessful() and result.skipped:
        print("nix_test: nothing was evaluated: no nix here (scripts/install-deps --dev installs it)", file=sys.stderr)
        sys.exit(77)
    sys.exit(not result.wasSuccessful())

"""Compiles one changed source alone, links it with the objects of a finished build and runs the tests on it."""
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KILLED, SURVIVED, NOT_COMPILED = "killed", "survived", "did not compile"
# A mutant that loops for ever is as dead as one that fails; this only ends it: all tests together need a sixth of it.
HANG_CPU_S = 120
MEMORY_BYTES = 16 << 30
# The command line's tests run the program of the build, and the house's read the sources: neither sees a mutant.
BLIND = ["House.*", "BadInput.*", "ConfigCommand.*", "Folders.*", "Generate.*", "Numbers.*", "PlotMetrics.*",
         "ResumeCommand.*", "Start.*", "Stopping.*", "Streams.*", "Terminal.*", "Texts.*", "Tools.*", "TrainCommand.*",
         "Pages.an_op*"]


class Workbench:
    def __init__(self, root, build, scratch):
        self.root, self.build, self.scratch = root, build, scratch
        shutil.rmtree(scratch, ignore_errors=True)  # a changed header left there would be read with every other mutant
        scratch.mkdir(parents=True)
        entries = json.loads((build / "compile_commands.json").read_text())
        self.commands = {os.path.relpath(e["file"], root): self._bare(e["command"]) for e in entries}
        link = subprocess.run(["ninja", "-t", "commands", "tests/quick_tests"], cwd=build, capture_output=True, text=True,
                              check=True).stdout.strip().splitlines()[-1]
        self.link = next(part for part in link.split(" && ") if "quick_tests" in part and part != ":").strip()
        self.dependents = self._read_dependencies()
        self.program = scratch / "mutant_tests"

    @staticmethod
    def _bare(command):
        """A compile command without its output, its source and its dependency file; warnings are not the matter here."""
        words = shlex.split(command)
        kept, skip = [], False
        for word in words:
            if skip or word in ("-o", "-c", "-MF", "-MT"):
                skip = not skip and word in ("-o", "-c", "-MF", "-MT")
            elif not word.startswith(("-W", "-MD")):
                kept.append(word)
        # Without optimisation of the last third a mutant is built in half the time; bits are the same (-ffp-contract=off).
        return kept + ["-O1", "-w"]

    def _read_dependencies(self):
        """Header -> sources that read it."""
        listing = subprocess.run(["ninja", "-t", "deps"], cwd=self.build, capture_output=True, text=True, check=True).stdout
        dependents, sources = {}, set(self.commands)
        for block in listing.split("\n\n"):
            lines = block.splitlines()
            if len(lines) < 2:
                continue
            paths = [os.path.relpath(os.path.join(self.build, line.strip()), self.root) for line in lines[1:]]
            source = next((p for p in paths if p in sources), None)
            for path in paths:
                if source and source.startswith(("src/", "tests/")) and "_long_test" not in source:
                    dependents.setdefault(path, set()).add(source)
        return dependents

    def try_text(self, path, text, filters):
        """(verdict, what killed it) for the file `path` with this text. `filters`: GoogleTest filters, run in turn."""
        everything = [path] if path.endswith(".cpp") else sorted(self.dependents[path])
        # A header is tried in its own tests before all that read it are compiled.
        own = [s for s in everything if s.startswith(f"tests/{Path(path).parent.name}/")]
        if own and own != everything:
            verdict, killer = self._try_sources(path, text, own, filters[:1])
            if verdict != SURVIVED:
                return verdict, killer
        return self._try_sources(path, text, everything, filters)

    def _try_sources(self, path, text, sources, filters):
        objects = {source: self.scratch / f"{n}.o" for n, source in enumerate(sources)}
        self._place(path).write_text(text)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(lambda item: self._compile(path, *item), objects.items()))
        self._place(path).unlink()
        if not all(done):
            return NOT_COMPILED, ""
        if not self._link(objects):
            return NOT_COMPILED, "link"
        for chosen in filters:
            killer = self._run(chosen)
            if killer:
                return KILLED, killer
        return SURVIVED, ""

    def _place(self, path):
        """The place of the changed text: a source alone, a header in a tree that is searched first."""
        place = self.scratch / ("overlay/" + path.split("/", 1)[1] if path.endswith(".h") else Path(path).name)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _compile(self, path, source, output):
        command = self.commands[source]
        if path == source:
            words = command + ["-c", str(self._place(path))]
        else:
            words = command[:1] + [f"-I{self.scratch / 'overlay'}"] + command[1:] + ["-c", str(self.root / source)]
        return subprocess.run(words + ["-o", str(output)], cwd=self.build, capture_output=True).returncode == 0

    def _link(self, objects):
        words = shlex.split(self.link)
        for source, output in objects.items():
            if source.startswith("tests/"):
                stem = source.removeprefix("tests/") + ".o"
                words = [str(output) if w.endswith("quick_tests.dir/" + stem) else w for w in words]
            else:  # before the archive: its own member is then not taken
                at = next(i for i, w in enumerate(words) if w.endswith("libhandgrad.a"))
                words.insert(at, str(output))
        words[words.index("-o") + 1] = str(self.program)
        return subprocess.run(words, cwd=self.build, capture_output=True).returncode == 0

    def _run(self, chosen):
        """The first test that fails, or the signal that ended them; "" if all pass."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (HANG_CPU_S, HANG_CPU_S + 1))
            if "-fsanitize" not in self.link:  # sanitizers reserve far more than they use
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        words = [str(self.program), f"--gtest_filter={chosen}-{':'.join(BLIND)}", "--gtest_fail_fast", "--gtest_brief=1"]
        environment = dict(os.environ, OMP_WAIT_POLICY="passive")
        done = subprocess.run(words, cwd=self.scratch, capture_output=True, preexec_fn=limit, env=environment)
        if done.returncode == 0:
            return ""
        failed = re.findall(rb"\[  FAILED  \] (\S+?)[,\s]", done.stdout)
        if failed:
            return failed[0].decode()
        if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
            return "never ended"
        return f"signal {-done.returncode}" if done.returncode < 0 else "exit"

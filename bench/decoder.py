#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times dqrun against llama.cpp on a decoder of a language model with 4-bit weights, alternating in one run.

    decoder.py LIBDQRUN.so LLAMA_CPP [--models FOLDER] [--threads N,…] [--contexts N,…] [--prompt N] [--tokens N] [--rounds N]
               [--isa LEVEL] [--history]

LLAMA_CPP is llama.cpp's source folder, as in the source package of llama-cpp-python (vendor/llama.cpp); it is built for this processor, or
for --isa alone, in a folder of the same name with -build-LEVEL behind it, with its own default options. Both engines get the same weights
(decoder_models.py), written to FOLDER. A row is a prompt of N tokens, or a token, after a context: the median of a round's tokens; of all
rounds the smallest counts. llama.cpp runs with flash attention and without, and the faster of both counts. dqrun's caches have full length
and are updated in place. Both engines run with caches of float16, llama.cpp's default, and of float32.
Needs the Python packages numpy, onnx and gguf, a C and a C++ compiler, and cmake."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import compare
import decoder_models
import processors
from as_level import LEVELS
from library import Session

AVX2 = ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2")
BUILDS = {"avx2": AVX2, "avxvnni": (*AVX2, "AVX_VNNI"), "avx512": (*AVX2, "AVX512"), "avx512vnni": (*AVX2, "AVX512", "AVX512_VNNI"),
          "avx512vbmi": (*AVX2, "AVX512", "AVX512_VNNI", "AVX512_VBMI")}  # of llama.cpp: its options for each level
PEERS = {"llama.cpp": "f16", "float32 cache": "f32"}  # llama.cpp's configurations, by name, and the type of both engines' caches
TYPES = {"f16": np.float16, "f32": np.float32}


def build_llama_cpp(source, level):
    """The program of llama_cpp.c, linked with llama.cpp for a level, None: for this processor."""
    folder = source.with_name(f"{source.name}-build-{level or 'native'}")
    features = [f"-DGGML_{name}=ON" for name in BUILDS.get(level, ())]
    off = [f"-DLLAMA_BUILD_{name}=OFF" for name in ("COMMON", "TESTS", "TOOLS", "EXAMPLES", "SERVER", "APP")]
    subprocess.run(["cmake", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
                    f"-DGGML_NATIVE={'OFF' if level else 'ON'}", *features, *off], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", "llama"], check=True, stdout=subprocess.DEVNULL)
    program = folder / "llama_cpp"
    libraries = sorted({path.parent for path in folder.rglob("lib*.so")})
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, Path(__file__).with_name("llama_cpp.c"), f"-I{source}/include",
                    f"-I{source}/ggml/include", *(f"-L{path}" for path in libraries), *(f"-Wl,-rpath,{path}" for path in libraries),
                    "-lllama", "-lggml", "-lggml-base"], check=True)
    return program


def titles_of(source):
    """Names of the peers in history.tsv, with the version of the source package around llama.cpp if there is one."""
    name = next((p.name for p in source.parents if p.name.startswith("llama_cpp_python-")), None)
    version = f" of {name.replace('_', '-')}" if name else ""
    return {peer: ("llama.cpp" if peer == "llama.cpp" else f"llama.cpp {peer}") + version for peer in PEERS}


class LlamaCpp:
    """A process that keeps its model and its cache over all measurements."""

    def __init__(self, program, model, *settings):
        """The settings are those of llama_cpp.c: threads, positions, flash attention, and the type of the cache."""
        self.process = subprocess.Popen([program, model, *map(str, settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.length = 0

    def ask(self, command, count):
        self.process.stdin.write(f"{command} {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("llama.cpp ended")
        self.length = count if command == "keep" else self.length + count
        return float(line)

    def reach(self, context):
        """A cache with so many positions."""
        if self.length > context:
            self.ask("keep", context)
        while self.length < context:
            self.ask("prompt", min(context - self.length, 2048))

    def prompt(self, context, count):
        self.reach(context)
        return self.ask("prompt", count)

    def token(self, context, count):
        self.reach(context)
        return self.ask("token", count)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Dqrun:
    """A session with its cache of a type of TYPES."""

    def __init__(self, options, model, shape, threads, positions, cache):
        self.session, self.random = Session(options.library, model, options.isa, threads, honor=True), np.random.default_rng(5)
        for layer in range(shape.layers):
            for part in ("key", "value"):
                values = self.random.standard_normal((1, shape.kv_heads, positions, shape.head), np.float32)
                self.session.set(f"past.{layer}.{part}", values.astype(TYPES[cache]), output=f"present.{layer}.{part}")

    def decode(self, context, count):
        self.session.set("input_ids", self.random.integers(0, 1000, (1, count)))
        self.session.set("seqlens_k", np.array([context + count - 1], np.int32))
        self.session.set("total_sequence_length", np.array(context + count, np.int32))
        start = time.perf_counter()
        self.session.run()
        return (time.perf_counter() - start) * 1e3

    def prompt(self, context, count):
        return self.decode(context, count)

    def token(self, context, count):
        return statistics.median(self.decode(context + i, 1) for i in range(count))

    def close(self):
        self.session.close()


def measure(engines, context, options):
    """Milliseconds of a prompt and of a token, by engine; each engine is warm before."""
    best = {}
    for rounds in range(options.rounds + 1):
        for name, engine in engines.items():
            for kind, count in (("prompt", options.prompt), ("token", options.tokens)):
                ms = getattr(engine, kind)(context, count)
                if rounds:
                    best[kind, name] = min(ms, best.get((kind, name), ms))
    return best


def rows_of(options, program, models, shape, threads):
    positions = max(options.contexts) + max(options.prompt, options.tokens)
    engines = {**{("dqrun", cache): Dqrun(options, model_of(models, cache), shape, threads, positions, cache) for cache in PEERS.values()},
               **{(peer, flash): LlamaCpp(program, models / "decoder.gguf", threads, positions, flash, cache)
                  for peer, cache in PEERS.items() for flash in (0, 1)}}
    for context in sorted(options.contexts, reverse=True):
        best = measure(engines, context, options)
        for kind, words in (("token", f"a token after {context}"), ("prompt", f"a prompt of {options.prompt} after {context}")):
            cells = ""
            for peer, cache in PEERS.items():
                ours, theirs = best[kind, ("dqrun", cache)], min(best[kind, (peer, flash)] for flash in (0, 1))
                cells += f" {ours:10.2f} {theirs:14.2f} {theirs / ours:8.2f}"
                yield {"case": f"decoder {words}", "isa": engines["dqrun", cache].session.isa(), "ms": ours, "errors": {},
                       "peers": {peer: theirs}}
            print(f"decoder {words:32} {threads:8}{cells}", flush=True)
    for engine in engines.values():
        engine.close()


def model_of(folder, cache):
    return folder / f"decoder-{cache}.onnx"


def write_models(folder, shape):
    """Both formats, where they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for cache, dtype in TYPES.items():
        if not model_of(folder, cache).exists():
            onnx.save(decoder_models.to_onnx(shape, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))), model_of(folder, cache))
    if not (folder / "decoder.gguf").exists():
        decoder_models.write_gguf(shape, folder / "decoder.gguf")


def numbers(text):
    return [int(n) for n in text.split(",")]


def main():
    p = argparse.ArgumentParser(description="Time dqrun against llama.cpp on a decoder, alternating in one run.")
    p.add_argument("library", help="libdqrun.so")
    p.add_argument("llama", type=Path, help="llama.cpp's source folder")
    p.add_argument("--models", type=Path, help="where the models are kept; default: a temporary folder")
    p.add_argument("--threads", type=numbers, default=[1])
    p.add_argument("--contexts", type=numbers, default=[0, 512, 4096])
    p.add_argument("--prompt", type=int, default=256)
    p.add_argument("--tokens", type=int, default=16)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--isa", choices=LEVELS)
    p.add_argument("--history", action="store_true")
    options = p.parse_args()
    program, shape = build_llama_cpp(options.llama.resolve(), options.isa), decoder_models.Shape()
    with tempfile.TemporaryDirectory(prefix="dqrun-bench-") as temporary:
        models = options.models or Path(temporary)
        write_models(models, shape)
        print(f"{processors.processor(level=options.isa)}: milliseconds\n{'':40} {'threads':>8}" +
              "".join(f" {'dqrun':>10} {peer:>14} {'ratio':>8}" for peer in PEERS))
        for threads in options.threads:
            rows = list(rows_of(options, program, models, shape, threads))
            if options.history:
                compare.add_history(rows, processors.processor(level=options.isa), threads, titles_of(options.llama.resolve()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

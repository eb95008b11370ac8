#!/usr/bin/env python3
"""Compares the C++ algorithms with the reference model (reference/README.md).

    compare.py vectors RUNNER ALGORITHM [--slow|--keyed|--literal]
                                                       the stored traces: ns, ns with a clock that never steps back, us; --slow:
                                                       by the runner's own slow model; --keyed: those in ns, by a key of a Keyed;
                                                       --literal: by the literal text of a script
    compare.py random RUNNER --algorithm A --ops N     fresh random traces of the same three kinds, N operations in all

The seed of the random traces is SLUICE_SEED (default 1) and is printed. Exit code 1 on any difference.
"""
import argparse
import gzip
import os
import pathlib
import subprocess
import sys

REFERENCE = pathlib.Path(__file__).resolve().parent / "reference"
KINDS = {"": [], "monotone": ["--monotone"], "us": ["--us"]}


def runner_options(kind):
    return ["--us"] if kind == "us" else []


def vectors(runner, algorithm, kinds, more_options):
    bad = 0
    for kind in kinds:
        path = REFERENCE / "vectors" / (".".join(filter(None, [algorithm, kind])) + ".jsonl.gz")
        print(f"{path.name}:", flush=True)
        bad += subprocess.run([runner, *runner_options(kind), *more_options], input=gzip.decompress(path.read_bytes())).returncode != 0
    return bad


def random_traces(runner, algorithm, operations, seed, kinds):
    bad = 0
    for index, kind in enumerate(kinds):
        command = [sys.executable, str(REFERENCE / "model.py"), "random", "--seed", str(seed + index), "--algorithm", algorithm,
                   "--ops", str(operations // len(kinds)), *KINDS[kind]]
        print(" ".join(command[1:]), flush=True)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as model:
            bad += subprocess.run([runner, *runner_options(kind)], stdin=model.stdout).returncode != 0
            model.stdout.close()
        bad += model.returncode != 0
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("vectors")
    one.add_argument("runner")
    one.add_argument("algorithm")
    one.add_argument("--slow", action="store_true")
    one.add_argument("--literal", action="store_true")
    one.add_argument("--keyed", action="store_true")
    two = commands.add_parser("random")
    two.add_argument("runner")
    two.add_argument("--algorithm", required=True)
    two.add_argument("--ops", type=int, default=50_000)
    for command in (one, two):
        command.add_argument("--only", choices=[kind for kind in KINDS if kind], help="one kind of traces")
    options = parser.parse_args()
    kinds = [options.only] if options.only else list(KINDS)
    if options.command == "vectors":
        more_options = [name for name in ("--slow", "--keyed", "--literal") if getattr(options, name[2:])]
        if options.keyed:
            kinds = [kind for kind in kinds if kind != "us"]
        return 1 if vectors(options.runner, options.algorithm, kinds, more_options) else 0
    seed = int(os.environ.get("SLUICE_SEED", "1"))
    print(f"SLUICE_SEED={seed}", flush=True)
    return 1 if random_traces(options.runner, options.algorithm, options.ops, seed, kinds) else 0


if __name__ == "__main__":
    sys.exit(main())

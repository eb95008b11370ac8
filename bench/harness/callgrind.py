"""Events that valgrind's callgrind counts. They don't depend on who else uses the machine."""

import re
import subprocess

# Last-level cache of the simulation: 32 MB, 16 ways, lines of 64 bytes.
LAST_LEVEL = "--LL=33554432,16,64"
EVENTS = {"Ir": "instructions", "DLmr": "misses reading", "DLmw": "misses writing"}


def count(program, workload, calls, cache=False):
    """Events of callgrind of a run of so many calls. With `cache`, only from the mark that the program sets when its
    table is there."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    if cache:
        command += ["--cache-sim=yes", LAST_LEVEL, "--instr-atstart=no"]
    run = subprocess.run([*command, program, workload, str(calls)], check=True, capture_output=True, text=True)
    names = re.search(r"Events\s*: (.*)", run.stderr).group(1).split()
    values = re.search(r"Collected\s*: (.*)", run.stderr).group(1).split()
    return dict(zip(names, map(int, values)))


def per_call(program, workload, calls, cache=False):
    """Events a call: the difference of a run and one twice as long, so that start and end are not in it."""
    once = count(program, workload, calls, cache)
    twice = count(program, workload, 2 * calls, cache)
    return {event: (twice[event] - once[event]) / calls for event in once}

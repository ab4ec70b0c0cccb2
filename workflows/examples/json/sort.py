"""Sorts numbers and prints as JSON how long it took."""

import argparse
import json
import random
import time


def insertion(numbers):
    done = []
    for number in numbers:
        at = len(done)
        while at > 0 and done[at - 1] > number:
            at -= 1
        done.insert(at, number)
    return done


ALGORITHMS = {"insertion": insertion, "builtin": sorted}

arguments = argparse.ArgumentParser()
arguments.add_argument("--algorithm", choices=ALGORITHMS, default="builtin")
arguments.add_argument("--count", type=int, default=400)
arguments.add_argument("-n", "--rounds", type=int, default=20)
options = arguments.parse_args()

runs, error = [], None
for round in range(options.rounds):
    began = time.perf_counter()
    numbers = random.Random(round).sample(range(options.count * 10), options.count)
    made = time.perf_counter()
    result = ALGORITHMS[options.algorithm](numbers)
    ended = time.perf_counter()
    runs.append({"phase": "make", "ms": (made - began) * 1e3})
    runs.append({"phase": "sort", "ms": (ended - made) * 1e3})
    if result != sorted(numbers):
        error = f"round {round} is not sorted"
total = sum(run["ms"] for run in runs) / 1e3
print(json.dumps({"runs": runs, "summary": {"seconds": total}, "error": error}))

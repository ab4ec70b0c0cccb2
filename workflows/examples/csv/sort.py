"""Sorts numbers and prints how long it took, one row per round."""

import argparse
import csv
import random
import sys
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

numbers = random.Random(1).sample(range(options.count * 10), options.count)
out = csv.writer(sys.stdout)
out.writerow(["round", "algorithm", "elapsed (ms)", "swaps, at most"])
rows = []
for round in range(options.rounds):
    began = time.perf_counter()
    result = ALGORITHMS[options.algorithm](numbers)
    rows.append([round, options.algorithm, (time.perf_counter() - began) * 1e3, options.count**2])
    assert result == sorted(numbers)
out.writerows(rows)

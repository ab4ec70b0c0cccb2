#!/usr/bin/env python3
"""Finds changes with Apache Otava, as a peer of `calibrate history`.

Reads {"series": [value or null, ...]} and prints [{"threshold": "0.001", "changes": {"series": [index, ...]}}, ...].
Needs apache-otava 0.8.0 (pip install apache-otava==0.8.0, in a venv).
"""
import json
import sys

from otava.analysis import compute_change_points, fill_missing

THRESHOLDS = ["0.05", "0.01", "0.001", "0.0001", "0.00001", "0.000001", "0.0000001"]
WINDOW = 50  # Otava's default.


def changes(values, threshold):
    values = list(values)
    fill_missing(values)
    found, _ = compute_change_points(values, window_len=WINDOW, max_pvalue=float(threshold), min_magnitude=0.0)
    return [int(point.index) for point in found]


def main():
    series = json.load(sys.stdin)
    json.dump([{"threshold": t, "changes": {name: changes(values, t) for name, values in series.items()}} for t in THRESHOLDS], sys.stdout)


main()

#!/usr/bin/python3
"""The figures of bench/ann/run: recall against a plain count, rates at a recall, medians of what was measured."""
import math
import os
import random
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "ann"))
sys.dont_write_bytecode = True
import figures  # noqa: E402

K = 10


def check_recall():
    """Rows with ties at the K-th place: whatever is as near counts, counted here from the distances themselves."""
    draw = random.Random(5)
    cosines_of_all = [[round(draw.random(), 2) for _ in range(300)] for _ in range(20)]
    truth = [sorted(range(300), key=lambda i, row=row: (-row[i], i))[:100] for row in cosines_of_all]
    cosines = [[row[i] for i in ids] for row, ids in zip(cosines_of_all, truth)]
    found = [draw.sample(ids[:14], 8) + draw.sample(ids[50:], 2) for ids in truth]
    good = sum(row[i] >= sorted(row, reverse=True)[K - 1] for row, ids in zip(cosines_of_all, found) for i in ids)
    assert math.isclose(figures.recall(found, truth, cosines, K), good / (K * len(found)))
    assert figures.recall([ids[:K] for ids in truth], truth, None, K) == 1


def check_rates():
    points = [(0.90, 4000.0), (0.98, 1000.0), (0.96, 2000.0)]
    assert math.isclose(figures.at_recall(points, 0.97), math.sqrt(2000 * 1000))
    assert math.isclose(figures.at_recall(points, 0.96), 2000)
    assert figures.at_recall(points, 0.99) is None
    assert figures.at_recall([], 0.95) is None
    # The smallest ef is above it already: no slower than the best of them.
    assert figures.at_recall([(1.0, 300.0), (1.0, 700.0), (0.99, 500.0)], 0.95) == 700


def check_medians():
    def cell(ef, queries, cpu_seconds):
        return {"ef": ef, "queries": queries, "seconds": 2.0, "cpu_seconds": cpu_seconds}
    cells = [cell(10, 100, 1.0), cell(20, 0, 0.0), cell(10, 300, 1.0), cell(10, 800, 2.0), cell(10, 0, 0.0)]
    result = figures.medians(cells)
    assert list(result) == [10], result  # nothing is known of ef 20
    assert result[10]["rounds"] == 3 and result[10]["qps"] == 150 and result[10]["per_cpu_second"] == 300, result
    assert (result[10]["qps_min"], result[10]["qps_max"]) == (50, 400), result


def main():
    check_recall()
    check_rates()
    check_medians()
    print("figures: fine")


if __name__ == "__main__":
    main()

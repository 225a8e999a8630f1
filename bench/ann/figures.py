"""Recall, interpolation and the tables of bench/ann/run."""
import math
import statistics

TARGETS = (0.95, 0.99)
TIE = 1e-6  # cosines are stored as float32; two that differ by less are a tie


def recall(found, truth, cosines, k):
    """Mean share of the k true neighbours among the first k found; whatever is as near as the k-th counts."""
    total = 0
    for row, ids in enumerate(found):
        good = k
        if cosines:
            while good < len(truth[row]) and cosines[row][good] >= cosines[row][k - 1] - TIE:
                good += 1
        total += len(set(ids[:k]) & set(truth[row][:good]))
    return total / (k * len(found))


def at_recall(points, wanted):
    """Rate at a recall: linear in recall, logarithmic in the rate, between neighbouring points; None where not reached.

    Where the smallest ef is above the recall already (a small set, scanned exactly), it is the best rate measured.
    """
    points = sorted(points)
    if points and points[0][0] >= wanted:
        return max(rate for _, rate in points)
    for (low, slow), (high, fast) in zip(points, points[1:]):
        if low <= wanted <= high and slow > 0 and fast > 0:
            share = (wanted - low) / (high - low) if high > low else 0
            return math.exp(math.log(slow) * (1 - share) + math.log(fast) * share)
    return None


def medians(cells):
    """Of one engine's cells [{ef, queries, seconds, cpu_seconds}] of all rounds: by ef, rates with their spread.

    On a machine with no time for it a short cell may end before its first query: it says nothing and is left out.
    """
    by_ef = {}
    for cell in cells:
        if cell["queries"] > 0 and cell["cpu_seconds"] > 0:
            by_ef.setdefault(cell["ef"], []).append(cell)
    result = {}
    for ef, each in sorted(by_ef.items()):
        wall = [c["queries"] / c["seconds"] for c in each]
        cpu = [c["queries"] / c["cpu_seconds"] for c in each]
        result[ef] = {"qps": statistics.median(wall), "qps_min": min(wall), "qps_max": max(wall),
                      "per_cpu_second": statistics.median(cpu), "rounds": len(each)}
        for name in ("p50_us", "p99_us"):
            if all(name in c for c in each):
                result[ef][name] = statistics.median(c[name] for c in each)
    return result


def summarise(measured, recalls):
    """measured: {(queries, engine, clients): cells}; recalls: {(queries, engine): {ef: recall}}. Rows for JSON."""
    rows = []
    for (queries, engine, clients), cells in measured.items():
        points = medians(cells)
        for ef, point in points.items():
            point["recall"] = recalls[(queries, engine)][ef]
        row = {"queries": queries, "engine": engine, "clients": clients,
               "points": [dict(point, ef=ef) for ef, point in points.items()], "at": {}}
        for target in TARGETS:
            row["at"][str(target)] = {
                what: at_recall([(p["recall"], p[what]) for p in points.values()], target)
                for what in ("qps", "per_cpu_second")}
        rows.append(row)
    return rows


def find_row(rows, queries, engine, clients):
    return next((row for row in rows if (row["queries"], row["engine"], row["clients"]) == (queries, engine, clients)),
                None)


def add_ratios(rows, reference):
    """Ratio to the reference engine's single thread, by wall and by CPU time, where both reach the recall."""
    for row in rows:
        base = find_row(rows, row["queries"], reference, 1)
        for at, values in row["at"].items():
            for what in ("qps", "per_cpu_second"):
                theirs = base and base["at"][at][what]
                values[what + "_ratio"] = values[what] / theirs if theirs and values[what] else None


def number(value, form=",.0f"):
    return "–" if value is None else format(value, form)


def engine_table(engines, rows, dim):
    lines = ["| engine | version | load or build: vectors a CPU second | s | resident bytes a vector | built |",
             "|---|---|---:|---:|---:|---|"]
    for engine in engines:
        facts = engine.facts
        lines.append(f"| {engine.label} | {facts['version']} | {number(rows / facts['build_cpu_seconds'])} | "
                     f"{facts['build_seconds']:.1f} | {number(facts['resident_bytes'] / rows)} | {facts['built']} |")
    lines.append("")
    lines.append(f"{rows:,} vectors of {dim} dimensions; resident: memory of no file (the float32 rows of HotKV's "
                 "compressed types are in a file; libraries with float32 hold them in memory).")
    return "\n".join(lines)


def recall_table(engines, rows, queries, clients):
    head = "| engine | " + " | ".join(f"at {t}: queries/s | x | per CPU second | x" for t in TARGETS) + " |"
    lines = [head, "|---|" + "---:|" * (4 * len(TARGETS))]
    for engine in engines:
        row = find_row(rows, queries, engine.name, clients)
        if not row:
            continue
        cells = []
        for target in TARGETS:
            at = row["at"][str(target)]
            cells += [number(at["qps"]), number(at["qps_ratio"], ".2f"), number(at["per_cpu_second"]),
                      number(at["per_cpu_second_ratio"], ".2f")]
        lines.append(f"| {engine.label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def curve_table(engines, rows, queries):
    lines = ["| engine | ef: recall@10, queries/s (smallest–largest) |", "|---|---|"]
    for engine in engines:
        row = find_row(rows, queries, engine.name, 1)
        if not row:
            continue
        cells = [f"{p['ef']}: {p['recall']:.4f}, {p['qps']:,.0f} ({p['qps_min']:,.0f}–{p['qps_max']:,.0f})"
                 for p in row["points"]]
        lines.append(f"| {engine.label} | " + "; ".join(cells) + " |")
    return "\n".join(lines)

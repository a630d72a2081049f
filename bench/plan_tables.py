#!/usr/bin/env python3
"""Plans tables named FAMILY-….CAPACITY.csv one after another and compares each peak with CAPACITY.

Usage: plan_tables.py COMMAND TABLE...   COMMAND is `arenite`; plans at --effort default.
"""
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile


def planned(command, table):
    """(peak, milliseconds, whether it is proved that no plan is lower)"""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "plan.json"
        try:
            subprocess.run([command, "plan", table, "--out", out], check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"plan_tables.py: {error}")
        plan = json.loads(out.read_text())
    return plan["peak"], plan["milliseconds"], plan["optimal"]


def capacity(table):
    digits = table.name.split(".")[-2] if table.name.count(".") > 1 else ""
    if not digits.isdigit() or not int(digits):
        sys.exit(f"plan_tables.py: '{table}': no capacity; expected a name such as cut-80-1.1048576.csv")
    return int(digits)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    families = collections.defaultdict(list)
    for table in map(pathlib.Path, sys.argv[2:]):
        most = capacity(table)
        peak, milliseconds, proved = planned(sys.argv[1], table)
        families[table.name.split("-")[0].split(".")[0]].append((peak / most, milliseconds, proved))
        print(f"{table.name:32} {peak / most:8.4f} {milliseconds:8.0f} ms  {'proved' if proved else ''}", flush=True)
    print(f"\n{'family':10} tables  proved  geo. mean    worst  ms, median  ms, most")
    for name, results in families.items():
        ratios, times, proofs = zip(*results)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{name:10} {len(results):6} {sum(proofs):7} {mean:10.4f} {max(ratios):8.4f}"
              f" {sorted(times)[len(times) // 2]:11.0f} {max(times):9.0f}")


if __name__ == "__main__":
    main()

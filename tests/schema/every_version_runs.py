#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every version of an operator that has a schema also has an implementation.

    every_version_runs.py DQRUN

Prints the versions that do not run, one a line; exit code 1 if there are any."""

import json
import subprocess
import sys


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    listing = subprocess.run([sys.argv[1], "ops", "--json"], check=True, capture_output=True, text=True).stdout
    missing = [row for row in json.loads(listing) if not row["implemented"] and not row["deprecated"]]
    for row in missing:
        print(f"{row['domain']}.{row['name']}-{row['since_version']} has a schema and no implementation")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

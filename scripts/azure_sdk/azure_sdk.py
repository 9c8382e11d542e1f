#!/usr/bin/env python3
"""Drive a simulated Azure with Azure's own SDK for Python, and check what it reads back.

Only a few lines depend on the simulator: they set its latency and budgets. The clients are Azure's own,
configured only with Azure's endpoints. The steps are in the files beside this one, one file for each
service. Every step prints one line; a step that fails prints the reason, and the others continue.

  azure_sdk.py --credentials credentials.json --ca ca.pem --control http://127.0.0.1:8080 --examples examples.json

`cargo xtask sdk` prepares a virtual environment, starts the simulator and runs this.
Exit status: 0 if every step passed, else 1.
"""
import argparse
import json
import logging
import os
import sys
import time
import traceback
from pathlib import Path

from proof import STEPS, Azure

# In this order: later ones use the resources of earlier ones.
import sign_in  # noqa: F401
import networks  # noqa: F401
import scale_sets  # noqa: F401
import machines  # noqa: F401
import refusals  # noqa: F401
import access  # noqa: F401
import vaults  # noqa: F401
import zones  # noqa: F401
import storage  # noqa: F401
import registries  # noqa: F401
import clusters  # noqa: F401
import examples  # noqa: F401
import the_end  # noqa: F401


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--credentials", required=True, type=Path, help="credentials.json of `cerulean simulate azure`")
    parser.add_argument("--ca", required=True, type=Path, help="ca.pem of `cerulean simulate azure`")
    parser.add_argument("--control", required=True, help="the simulator's plain HTTP, for latency and budgets")
    parser.add_argument("--examples", required=True, type=Path, help="the examples of resource types, as JSON")
    parser.add_argument("--only", metavar="FILE", help="run the steps of this file alone, and those that make the group")
    parser.add_argument("-v", "--verbose", action="store_true", help="show where a step failed")
    arguments = parser.parse_args()
    # Refusals are reported by the steps that expect them.
    logging.getLogger("azure").setLevel(logging.CRITICAL)
    # The libraries trust the certificates in this file without further options.
    os.environ["REQUESTS_CA_BUNDLE"] = str(arguments.ca.resolve())
    simulated = json.loads(arguments.credentials.read_text())
    # Vaults and accounts are reached under Azure's own names, by the simulator's proxy.
    os.environ.update(HTTPS_PROXY=simulated["httpsProxy"], NO_PROXY="127.0.0.1,localhost")
    azure = Azure(simulated, arguments.control)
    azure.examples = arguments.examples
    failed = 0
    wanted = {"networks", arguments.only}
    steps = [step for step in STEPS if not arguments.only or step[1].__module__ in wanted]
    for words, function in steps:
        begun = time.monotonic()
        try:
            function(azure)
        except Exception as problem:  # pylint: disable=broad-except
            failed += 1
            text = " ".join(str(problem).split())
            print(f"no  {words}: {type(problem).__name__}: {text[:600]}", flush=True)
            if arguments.verbose:
                traceback.print_exc()
        else:
            print(f"ok  {words} ({time.monotonic() - begun:.1f} s)", flush=True)
    print(f"{len(steps) - failed} of {len(steps)} steps passed.")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

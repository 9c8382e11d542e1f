#!/usr/bin/env python3
"""Leaves out of Azure Service Operator's table of kinds all groups but some, so that it builds in minutes.

    operator_kinds.py internal/controllers/controller_resources_gen.go GROUP... > FILE

The table is generated and regular: a statement for each kind, a function for each index. What is said of the groups that stay is
as it was.
"""

import re
import sys


def main() -> None:
    text = open(sys.argv[1], encoding="utf-8").read()
    groups = set(sys.argv[2:])
    gone = set()

    def of_import(line: str) -> str:
        found = re.match(r'\t(\w+) ".*/v2/api/([^/]+)/', line)
        if found and found[2] not in groups:
            gone.add(found[1])
            return ""
        return line

    head, body = text.split("\n)\n", 1)
    head = "".join(of_import(line + "\n") for line in head.split("\n"))
    used = re.compile(r"\b(" + "|".join(sorted(gone)) + r")\.")
    # A statement of a function, or a function of its own with its comment.
    pieces = re.findall(r"(?:^//[^\n]*\n)*^func index.*?^}\n|^\t(?=\S).*?(?=^\t\w|^}|^//)|^(?!\t).*?\n", body, re.M | re.S)
    kept = "".join(piece for piece in pieces if not used.search(piece))
    sys.stdout.write(head + ")\n" + kept)


main()

#!/usr/bin/env python3
"""Run everyday commands of the real Azure CLI against a simulated Azure, and check what they print.

The commands are in commands.txt beside this file, which describes its format. The CLI reaches the simulator under
Azure's own names, through the simulator's proxy; nothing in it is changed or replaced. Each command is a
fresh `AzCli`, as the program `az` makes one, but all of them run in this process: to start, `az` alone takes up to
seven seconds, most of which it spends on loading Python.

  azure_cli.py --credentials credentials.json --ca ca.pem [commands.txt]

`cargo xtask azure-cli` prepares a virtual environment, starts the simulator and runs this.
Exit status: 0 if every command had its expected result, else 1.
"""
import argparse
import io
import json
import os
import re
import shlex
import string
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

CAPTURE = re.compile(r"([a-z_]+) = (.+)")
ENVIRONMENT = {
    # No telemetry, no installation of extensions, no warnings.
    "AZURE_CORE_COLLECT_TELEMETRY": "false",
    "AZURE_CORE_ONLY_SHOW_ERRORS": "true",
    "AZURE_CORE_NO_COLOR": "true",
    "AZURE_EXTENSION_USE_DYNAMIC_INSTALL": "no",
    "NO_PROXY": "",
    "no_proxy": "",
}


@dataclass
class Command:
    """One command of the file, and its expected result."""

    number: int
    text: str
    expectations: list = field(default_factory=list)


class WrongFile(Exception):
    """The file of commands cannot be read."""


class NotSo(Exception):
    """A command did not have its expected result."""


def read_commands(path):
    commands = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if line.startswith(("az ", "export ")):
            commands.append(Command(number, text))
        elif not line[0].isspace() or not commands:
            raise WrongFile(f"line {number} is neither a command, nor below one: {text}")
        elif text.startswith("--"):
            commands[-1].text += " " + text
        else:
            commands[-1].expectations.append(text)
    return commands


class Words(dict):
    """The value of `$name`."""

    def __missing__(self, name):
        raise NotSo(f"${name} is not known: the command that tells it has not succeeded")

    def fill(self, text):
        return string.Template(text).substitute(self)


class Errors(io.TextIOBase):
    """The standard error of each command in turn: the CLI keeps the stream of its first start."""

    def __init__(self):
        super().__init__()
        self.text = ""

    def writable(self):
        return True

    def write(self, text):
        self.text += text
        return len(text)


def az(arguments, errors):
    """Runs a command as `az` does. Returns its exit status, its output, and its errors in one line."""
    from azure.cli.core import get_default_cli

    errors.text, output, before = "", io.StringIO(), sys.stderr
    sys.stderr = errors
    try:
        status = get_default_cli().invoke(arguments, out_file=output)
    except SystemExit as ending:
        status = ending.code
    finally:
        sys.stderr = before
    return status, output.getvalue(), " ".join(errors.text.split())


def check(command, words, errors):
    import jmespath

    if command.text.startswith("export "):
        name, _, value = words.fill(command.text.removeprefix("export ")).partition("=")
        os.environ[name] = value
        return
    fails = [text for text in command.expectations if text.startswith("fails: ")]
    arguments = [words.fill(word) for word in shlex.split(command.text)[1:]]
    status, output, message = az(arguments, errors)
    if fails:
        wanted = words.fill(fails[0].removeprefix("fails: "))
        if not status:
            raise NotSo(f"it succeeded, and should be refused with {wanted}")
        if wanted not in message:
            raise NotSo(f"it is not refused with {wanted}: {message}")
        return
    if status:
        raise NotSo(message or f"it ended with {status}")
    try:
        document = json.loads(output) if output.strip() else None
    except ValueError:
        document = None
    for text in command.expectations:
        capture = CAPTURE.fullmatch(text)
        if text.startswith("prints: "):
            if words.fill(text.removeprefix("prints: ")) not in output:
                raise NotSo(f"{text} is not so: {output}")
        elif text.startswith("file "):
            name, _, wanted = words.fill(text.removeprefix("file ")).partition(": ")
            if not Path(name).exists() or wanted not in Path(name).read_text():
                raise NotSo(f"{text} is not so")
        elif capture:
            value = jmespath.search(capture[2], document)
            if not isinstance(value, str):
                raise NotSo(f"{capture[2]} is no text in {output}")
            words[capture[1]] = value
        elif jmespath.search(words.fill(text), document) is not True:
            raise NotSo(f"{text} is not so: {json.dumps(document)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--credentials", required=True, type=Path, help="credentials.json of `cerulean simulate azure`")
    parser.add_argument("--ca", required=True, type=Path, help="ca.pem of `cerulean simulate azure`")
    parser.add_argument("commands", nargs="?", type=Path, default=Path(__file__).with_name("commands.txt"))
    arguments = parser.parse_args()
    try:
        commands = read_commands(arguments.commands)
    except (OSError, WrongFile) as problem:
        sys.exit(f"{arguments.commands}: {problem}")
    simulated = json.loads(arguments.credentials.read_text())
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ENVIRONMENT, AZURE_CONFIG_DIR=folder)
        words = Words(
            folder=folder,
            ca=str(arguments.ca.resolve()),
            proxy=simulated["httpsProxy"],
            tenant=simulated["tenantId"],
            subscription=simulated["subscriptionId"],
            client=simulated["aadClientId"],
            secret=simulated["aadClientSecret"],
            endpoint=simulated["resourceManagerEndpoint"],
            authority=simulated["authority"],
        )
        passed, failed = run(commands, words)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def run(commands, words):
    """Returns how many commands succeeded, and how many failed."""
    errors, passed, failed = Errors(), 0, 0
    for command in commands:
        begun = time.monotonic()
        try:
            check(command, words, errors)
        except NotSo as problem:
            failed += 1
            print(f"no  line {command.number}: {command.text}\n    {str(problem)[:2000]}", flush=True)
            continue
        if command.text.startswith("az "):
            passed += 1
            print(f"ok  {command.text} ({time.monotonic() - begun:.1f} s)", flush=True)
    return passed, failed


if __name__ == "__main__":
    main()

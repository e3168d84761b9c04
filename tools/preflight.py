"""Tells what this machine lacks before anything is downloaded; `make` runs it before it installs.

python tools/preflight.py demo|test|check --venv FOLDER

Standard library only, and readable by Pythons that are too old for the rest. Exit code 1, with an error and a hint for
everything that is missing.
"""

import argparse
import ctypes
import importlib.util
import os
import sys
import tempfile

OLDEST, NEWEST = (3, 10), (3, 12)
OPENMP = "libgomp.so.1"
GB = 1e9
SPARE = 0.2 * GB  # of disk: recordings, caches of compiled modules
# Measured with MindSpore 2.10: packages, bytes of the environment, and bytes of what is downloaded for it.
SIZES = {"demo": (25, 3.3 * GB, 1.0 * GB), "test": (100, 3.8 * GB, 1.2 * GB), "check": (172, 4.0 * GB, 1.2 * GB)}
# By ID and ID_LIKE of /etc/os-release: how a package is installed, and which one has libgomp.so.1.
SYSTEMS = {
    "debian": ("apt install", "libgomp1"),
    "ubuntu": ("apt install", "libgomp1"),
    "fedora": ("dnf install", "libgomp"),
    "rhel": ("dnf install", "libgomp"),
    "openEuler": ("dnf install", "libgomp"),
    "suse": ("zypper install", "libgomp1"),
    "alpine": ("apk add", "libgomp"),
}


def main():
    """Print what is missing; 1 when anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=sorted(SIZES))
    parser.add_argument("--venv", default=".venv")
    asked = parser.parse_args()
    family = system()
    missing = python(sys.version_info[:3]) + environment(family) + openmp(family) + disk(asked.purpose, asked.venv)
    for error, hint in missing:
        print("error: " + error, file=sys.stderr)
        print("hint: " + hint + "\n", file=sys.stderr)
    if missing:
        print("Nothing was downloaded.", file=sys.stderr)
    return 1 if missing else 0


def system(path="/etc/os-release"):
    """The first name of this distribution that SYSTEMS has; empty for none."""
    names = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.strip().partition("=")
                names[name] = value.strip("\"'").split()
    return next((word for word in names.get("ID", []) + names.get("ID_LIKE", []) if word in SYSTEMS), "")


def python(version):
    """[(error, hint)] where this Python cannot run pipeprof."""
    if OLDEST <= version[:2] <= NEWEST:
        return []
    found = ".".join(map(str, version))
    return [
        (
            "Python {} at {}, expected 3.10 to 3.12".format(found, sys.executable),
            "name another one: make PYTHON=/path/to/python3.11 demo",
        )
    ]


def environment(family):
    """[(error, hint)] where `python -m venv` would fail."""
    absent = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if not absent:
        return []
    own = os.path.realpath(sys.executable).startswith("/usr/bin/")  # else no package of the distribution mends it
    name = "python{}.{}-venv".format(*sys.version_info[:2])
    hint = "apt install " + name if own and family in ("debian", "ubuntu") else "install them for this Python"
    names = "` and `".join(absent)
    error = "{} has no module `{}`, without which it makes no environment".format(sys.executable, names)
    return [(error, hint)]


def openmp(family):
    """[(error, hint)] where MindSpore could not be imported for lack of GNU OpenMP."""
    try:
        ctypes.CDLL(OPENMP)
    except OSError as error:
        command, package = SYSTEMS.get(family, ("install the package that has", OPENMP))
        return [("{} (MindSpore is linked to it)".format(error), "{} {}".format(command, package))]
    return []


def disk(purpose, venv):
    """[(error, hint)] for each file system with too little space, less what was installed before."""
    _, installed, downloaded = SIZES[purpose]
    needs = {}
    places = (
        (venv, "VENV", installed + SPARE - size(venv)),
        (tempfile.gettempdir(), "TMPDIR", downloaded),
        (cache(), "PIP_CACHE_DIR", downloaded - size(cache())),
    )
    for place, variable, amount in places:
        folder = nearest(place)
        amounts = needs.setdefault(os.stat(folder).st_dev, [folder, []])
        if amount > 0:
            amounts[1].append((variable, amount))
    missing = []
    for folder, amounts in needs.values():
        needed = sum(amount for _, amount in amounts)
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        if free < needed:
            variables = " and ".join(variable for variable, _ in amounts)
            missing.append(
                (
                    "{:.1f} GB free on the disk of {}, expected {:.1f} GB".format(free / GB, folder, needed / GB),
                    "free some, or set {} to a folder on another disk".format(variables),
                )
            )
    return missing


def cache():
    """Where pip keeps what it downloaded."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("PIP_CACHE_DIR") or os.path.join(base, "pip")


def nearest(path):
    """A folder, or the nearest one above that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def size(folder):
    """Bytes of the files below a folder; 0 where there is none."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # removed meanwhile
                continue
    return total


if __name__ == "__main__":
    sys.exit(main())

"""Packs a folder into a zip with the same bytes for the same files: `pack.py FOLDER ZIP`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path


def main():
    folder, archive = Path(sys.argv[1]), Path(sys.argv[2])
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, path.read_bytes(), compresslevel=9)
    print(archive, archive.stat().st_size)


if __name__ == "__main__":
    main()

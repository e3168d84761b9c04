"""A script where torchvision may be compiled for another torch than the one here: `python other_torch.py SCRIPT WORDS`.

A build of torch for CPUs is small, and there is none of torchvision: half of its operators are missing, and importing it
fails where nobody says that they exist.
"""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import torch


def own_operators():
    """Names of the operators that torchvision expects, where it cannot give them; kept as long as what is returned."""
    spec = find_spec("torchvision")
    for compiled in Path(spec.origin).parent.glob("_C*.so") if spec else ():
        try:
            torch.ops.load_library(compiled)
        except (OSError, RuntimeError):
            continue
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


if __name__ == "__main__":
    library = own_operators()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")

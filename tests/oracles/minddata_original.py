"""Runs the analysis that MindSpore 2.10 has installed on folders: `python minddata_original.py FOLDER ...`.

Prints {folder: summary}, the summary null when it makes none. In a process of its own: MindSpore logs and warns.
"""

import json
import sys
import tempfile

from mindspore.profiler.analysis.parser.ms_minddata_parser import MindDataParser
from mindspore.profiler.analysis.viewer.ms_minddata_viewer import MindDataPiplineSummaryViewer

found = {}
with tempfile.TemporaryDirectory() as scratch:
    for folder in sys.argv[1:]:
        options = {
            "activities": ["CPU"], "rank_id": 0, "device_id": 0, "framework_path": folder, "ascend_ms_dir": scratch,
            "ascend_profiler_output_path": scratch,
        }  # fmt: skip
        viewer = MindDataPiplineSummaryViewer(**options)
        summaries = []
        viewer._save_data = summaries.append
        try:
            viewer.save(MindDataParser(**options)._parse({}))
        except Exception as error:  # noqa: BLE001 - whatever it raises, it made no summary
            print(f"{folder}: {error!r}", file=sys.stderr)
        found[folder] = summaries[0] if summaries else None
print("\n" + json.dumps(found))

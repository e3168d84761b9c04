"""The table of the pipeline that MindSpore 2.10 makes of its dataset profiles: `minddata_tables.py OUT FOLDER ...`.

Writes OUT/NAME/minddata_pipeline_raw_0.csv for each folder of that name.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mindspore.profiler.analysis.parser.ms_minddata_parser import MindDataParser
from mindspore.profiler.analysis.viewer.ms_minddata_viewer import MindDataPipelineRawViewer

for folder in map(Path, sys.argv[2:]):
    out = Path(sys.argv[1]) / folder.name
    out.mkdir(parents=True)
    options = {
        "activities": ["CPU"], "rank_id": 0, "device_id": 0, "framework_path": str(folder), "ascend_ms_dir": str(out),
        "ascend_profiler_output_path": str(out),
    }  # fmt: skip
    MindDataPipelineRawViewer(**options).save(MindDataParser(**options)._parse({}))

"""Files of MindSpore's dataset profiling, as written: our own recordings have them, and so have other people's folders.

files    which file is which, and reading damaged ones      graph    operators and the fill of their queues
cpu      time stamps, CPU and memory                        fetches  batches, on the host's and on the device's side
log      timing blocks in a log, and its clock              folder   everything of one rank, damage apart
rows     one rank to tables                                 reader   a whole import
"""

from pipeprof.read.minddata.fetches import FetchRecord
from pipeprof.read.minddata.folder import MindData, read_folder, thin_out
from pipeprof.read.minddata.graph import PipelineOp

__all__ = ["FetchRecord", "MindData", "PipelineOp", "read_folder", "thin_out"]

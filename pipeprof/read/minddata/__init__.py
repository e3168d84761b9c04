"""Files of MindSpore's dataset profiling, as written: our own recordings have them, and so have other people's folders.

files    which file is which, reading damaged ones; timing blocks in a log, and its clock
graph    operators and the fill of their queues
fetches  batches, on the host's and on the device's side
folder   everything of one rank, damage apart; time stamps, CPU and memory
reader   a whole import; one rank to tables
"""

from pipeprof.read.minddata.fetches import FetchRecord
from pipeprof.read.minddata.folder import RankFiles, read_folder, thin_out
from pipeprof.read.minddata.graph import PipelineOp

__all__ = ["FetchRecord", "PipelineOp", "RankFiles", "read_folder", "thin_out"]

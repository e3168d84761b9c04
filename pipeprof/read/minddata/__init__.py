"""Files of MindSpore's dataset profiling, as written: our own recordings have them, and so have other people's folders.

files    which file is which, and reading damaged ones      graph    operators and the fill of their queues
cpu      time stamps, CPU and memory                        fetches  batches, on the host's and on the device's side
timings  timing blocks in a log                             align    the log's clock to the clock of the others
folder   everything of one rank, damage apart               rows     one rank to tables
passes   reading a rank, and writing its tables             reader   a whole import
"""

from pipeprof.read.minddata.fetches import FetchRecord
from pipeprof.read.minddata.graph import PipelineOp
from pipeprof.read.minddata.saved import MindData, read_folder, thin_out

__all__ = ["FetchRecord", "MindData", "PipelineOp", "read_folder", "thin_out"]

"""The demo's training as msrun starts it, which takes a script and no module: one rank of a data-parallel training.

msrun --worker_num=2 --local_worker_num=2 --join=True tools/train_in_ranks.py --parallel --steps 150
"""

from pipeprof.experiment.workload import main

main()

-- What kind of work keeps each operator of the training pipelines busy.
--
-- poll: a Python source with two or more workers whose rows come as slowly as its master's 100 ms sleeps make them (16
-- prepared rows a worker with threads; max(2, min(queue, 4 * queue // workers)) with processes), though its workers
-- could be faster. burst: the work of a batch varies by more than 1.5 times its mean, or the usual longest row is more
-- than 3.3 batches' work, or one that does not compute has in half of the intervals a row of 15 times the mean (timing
-- lines of a source with a master show the master's sleeps, so they do not count). gil: it computes in Python inside
-- the process while that lock is held most of the time. cpu: its workers compute for at least half of their time. wait:
-- they do not (storage, network, sleep, locks).
--
-- Reads: load_host, pipeline_load
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   operator; -1 is the training loop
--   kind          varchar  cpu | wait | gil | burst | poll; null for the training loop, and when it cannot be told
--   law_row_ns    double   ns     shortest time between two rows that the master's sleeps allow; null without a master
--   python_cores  double   cores  computing in Python inside the process; 0 when it does not or is not measured
WITH judged AS (
  SELECT
    pipeline_load.rep,
    pipeline_load.rank,
    pipeline_load.pipeline_key,
    pipeline_load.op_id,
    pipeline_load.workers,
    pipeline_load.rate,
    pipeline_load.rows_per_batch,
    pipeline_load.row_ns,
    pipeline_load.work_cv,
    pipeline_load.longest_batches,
    pipeline_load.longest_ns,
    pipeline_load.burst_share,
    pipeline_load.cpu_share,
    load_host.gil_share,
    CASE
      WHEN pipeline_load.op_type <> 'GeneratorOp' OR pipeline_load.workers < 2 THEN NULL
      WHEN coalesce(pipeline_load.uses_processes, FALSE)
        THEN
          1.0e8 / nullif(
            pipeline_load.workers
            * greatest(
              2.0e0,
              least(
                coalesce(pipeline_load.capacity, 16),
                floor(4.0e0 * coalesce(pipeline_load.capacity, 16) / nullif(pipeline_load.workers, 0))
              )
            ),
            0
          )
      ELSE 1.0e8 / nullif(16.0e0 * pipeline_load.workers, 0)
    END AS law_row_ns,
    -- Whether a map of imported files is Python is not known: it may be.
    CASE
      WHEN coalesce(pipeline_load.uses_processes, FALSE) OR NOT coalesce(pipeline_load.is_python, TRUE) THEN 0.0e0
      ELSE coalesce(pipeline_load.cores, 0.0e0)
    END AS python_cores
  FROM pipeline_load
  LEFT JOIN load_host
    ON
      pipeline_load.rep = load_host.rep
      AND pipeline_load.rank = load_host.rank
      AND pipeline_load.pipeline_key = load_host.pipeline_key
)

SELECT
  rep,
  rank,
  pipeline_key,
  op_id,
  CASE
    WHEN op_id < 0 THEN NULL
    WHEN
      law_row_ns IS NOT NULL
      AND coalesce(row_ns / nullif(workers, 0) < law_row_ns, TRUE)
      AND 1.0e9 / nullif(rate * rows_per_batch, 0)
      BETWEEN 0.7e0 * law_row_ns AND CASE WHEN row_ns IS NULL THEN 1.1e0 ELSE 1.25e0 END * law_row_ns
      THEN 'poll'
    WHEN
      coalesce(work_cv > 1.5e0 AND law_row_ns IS NULL, FALSE) OR coalesce(longest_batches > 3.3e0, FALSE)
      OR coalesce(burst_share >= 0.5e0 AND cpu_share < 0.5e0, FALSE)
      THEN 'burst'
    WHEN python_cores >= 0.5e0 AND gil_share >= 0.25e0 THEN 'gil'
    WHEN cpu_share >= 0.5e0 THEN 'cpu'
    WHEN cpu_share < 0.5e0 THEN 'wait'
  END AS kind,
  law_row_ns,
  python_cores
FROM judged

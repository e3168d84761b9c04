-- What MindSpore 2.10's dataset analysis (BottleneckAnalyzer) says about the training pipelines; not our verdict.
--
-- Over all samples, warm-up included, in percentages rounded to two decimals: its thresholds are compared with those. A
-- number right between two decimals goes up here, in MindSpore to the even one.
-- It looks from the source to the sink and the last match wins, so of several the one nearest the training loop. Its
-- input is the queue of the first child that has one. It says nothing unless queues, batches and the CPU of every
-- operator are there: then `missing` is null.
--
-- Reads: pipeline_usage, train_batch?
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep                     bigint   repetition
--   rank                    bigint   process rank
--   pipeline_key            varchar  equal keys are the same pipeline again
--   op_id                   bigint   operator
--   op_type                 varchar  such as MapOp
--   workers                 bigint   parallel workers
--   input_id                bigint   operator whose queue is its input; null for a source
--   queue_average_size      double   mean entries in its queue; null without one
--   queue_utilization_pct   double   %  mean fill of its queue; null without one
--   queue_empty_freq_pct    double   %  samples of an empty queue; null without one
--   input_utilization_pct   double   %  mean fill of its input; null without one
--   input_empty_freq_pct    double   %  samples of an empty input; null without one
--   avg_cpu_pct             double   %  of one core; null without samples
--   avg_cpu_pct_per_worker  double   %  of one core, per worker; null without samples
--   missing                 varchar  batches | cpu | op_ids | workers: why nothing is said; null when all is there
--   cpu_detail              varchar  high (more workers) | low (workers of no use); null when neither
--   queue_detail            varchar  leaf | device_queue | inner: its queue finding; null when none
--   bottleneck              varchar  cpu (more workers) | queue (a larger prefetch_size): it matches; null when not
--   is_named                boolean  the bottleneck that is printed
WITH RECURSIVE trace AS (
  SELECT
    rep, rank, pipeline_key,
    count(*) AS batches
  FROM train_batch
  WHERE side = 'host'
  GROUP BY ALL
),

first_child AS (
  SELECT
    rep, rank, pipeline_key,
    consumer_id AS op_id,
    min(op_id) AS child_id
  FROM pipeline_usage
  WHERE consumer_id IS NOT NULL
  GROUP BY ALL
),

child AS (
  SELECT
    first_child.rep, first_child.rank, first_child.pipeline_key, first_child.op_id, first_child.child_id,
    pipeline_usage.samples > 0 AS is_sampled
  FROM first_child
  INNER JOIN pipeline_usage
    ON
      first_child.rep = pipeline_usage.rep
      AND first_child.rank = pipeline_usage.rank
      AND first_child.pipeline_key = pipeline_usage.pipeline_key
      AND first_child.child_id = pipeline_usage.op_id
),

walk AS (
  SELECT
    rep, rank, pipeline_key, op_id, child_id, is_sampled,
    1 AS links
  FROM child
  UNION ALL
  SELECT
    walk.rep, walk.rank, walk.pipeline_key, walk.op_id, child.child_id, child.is_sampled,
    walk.links + 1 AS links
  FROM walk
  INNER JOIN child
    ON
      walk.rep = child.rep
      AND walk.rank = child.rank
      AND walk.pipeline_key = child.pipeline_key
      AND walk.child_id = child.op_id
  WHERE NOT walk.is_sampled AND walk.links < 100
),

average AS (
  SELECT
    rep, rank, pipeline_key, op_id, op_type, workers, capacity,
    floor(mean_depth * 100.0e0 + 0.5e0) / 100.0e0 AS queue_average_size,
    floor(100.0e0 * empty_samples / nullif(samples, 0) * 100.0e0 + 0.5e0) / 100.0e0 AS queue_empty_freq_pct,
    floor(mean_cores * 10000.0e0 + 0.5e0) / 100.0e0 AS avg_cpu_pct,
    count(*) OVER (PARTITION BY rep, rank, pipeline_key) AS ops,
    max(op_id) OVER (PARTITION BY rep, rank, pipeline_key) AS last_id,
    sum(CASE WHEN cpu_samples > 0 THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank, pipeline_key) AS cpu_ops,
    sum(CASE WHEN workers IS NOT NULL THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank, pipeline_key) AS worker_ops
  FROM pipeline_usage
),

measured AS (
  SELECT
    average.rep, average.rank, average.pipeline_key, average.op_id, average.op_type, average.workers,
    average.queue_average_size,
    floor(100.0e0 * average.queue_average_size / nullif(average.capacity, 0) * 100.0e0 + 0.5e0) / 100.0e0
      AS queue_utilization_pct,
    average.queue_empty_freq_pct, average.avg_cpu_pct, CASE
      WHEN average.workers = 0 THEN -1.0e0
      ELSE floor(average.avg_cpu_pct / nullif(average.workers, 0) * 100.0e0 + 0.5e0) / 100.0e0
    END AS avg_cpu_pct_per_worker,
    walk.child_id AS input_id,
    CASE
      WHEN trace.batches IS NULL THEN 'batches'
      WHEN average.cpu_ops < average.ops THEN 'cpu'
      WHEN average.last_id + 1 <> average.ops THEN 'op_ids'
      WHEN average.worker_ops < average.ops THEN 'workers'
    END AS missing,
    average.op_type IN (
      'BarrierOp', 'ConcatOp', 'EpochCtrlOp', 'RenameOp', 'RepeatOp', 'ShuffleOp', 'SkipOp', 'TakeOp', 'ZipOp'
    ) AS is_skipped
  FROM average
  LEFT JOIN trace USING (rep, rank, pipeline_key)
  LEFT JOIN walk
    ON
      average.rep = walk.rep
      AND average.rank = walk.rank
      AND average.pipeline_key = walk.pipeline_key
      AND average.op_id = walk.op_id
      AND walk.is_sampled
),

paired AS (
  SELECT
    measured.*,
    measured.avg_cpu_pct_per_worker AS per_worker,
    measured.queue_utilization_pct AS own_pct,
    feed.queue_utilization_pct AS input_utilization_pct,
    feed.queue_empty_freq_pct AS input_empty_freq_pct,
    measured.missing IS NULL AND NOT measured.is_skipped AS is_judged
  FROM measured
  LEFT JOIN measured AS feed
    ON
      measured.rep = feed.rep
      AND measured.rank = feed.rank
      AND measured.pipeline_key = feed.pipeline_key
      AND measured.input_id = feed.op_id
),

judged AS (
  SELECT
    *,
    CASE
      WHEN NOT is_judged THEN NULL
      WHEN per_worker > 75.0e0 THEN 'high'
      WHEN per_worker < 20.0e0 AND workers > 1 THEN 'low'
    END AS cpu_detail,
    CASE
      WHEN NOT is_judged OR op_type = 'BatchOp' THEN NULL
      WHEN input_id IS NULL AND own_pct IS NOT NULL THEN CASE WHEN own_pct <= 50.0e0 THEN 'leaf' END
      WHEN op_type = 'DeviceQueueOp' AND input_id IS NOT NULL
        THEN CASE WHEN input_empty_freq_pct > 60.0e0 THEN 'device_queue' END
      WHEN input_utilization_pct - own_pct > 50.0e0 THEN 'inner'
    END AS queue_detail,
    CASE
      WHEN NOT is_judged OR op_type = 'DeviceQueueOp' THEN NULL
      WHEN per_worker > 75.0e0 THEN 'cpu'
      WHEN
        per_worker < 20.0e0 AND (input_utilization_pct < 10.0e0 OR own_pct - input_utilization_pct > 50.0e0)
        THEN 'queue'
    END AS bottleneck
  FROM paired
)

SELECT
  rep, rank, pipeline_key, op_id, op_type, workers, input_id, queue_average_size, queue_utilization_pct,
  queue_empty_freq_pct, input_utilization_pct, input_empty_freq_pct, avg_cpu_pct, avg_cpu_pct_per_worker, missing,
  cpu_detail, queue_detail, bottleneck,
  bottleneck IS NOT NULL
  AND op_id = min(CASE WHEN bottleneck IS NOT NULL THEN op_id END) OVER (PARTITION BY rep, rank, pipeline_key)
    AS is_named
FROM judged
ORDER BY rep, rank, pipeline_key, op_id

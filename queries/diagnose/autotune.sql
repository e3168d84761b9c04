-- What MindSpore 2.10's dataset AutoTune would change in its first round on the training pipelines; not our verdict.
--
-- Over all batches and samples, warm-up included. The pipeline is the bottleneck when the last queue is filled to less
-- than 0.75. Then every operator that has workers is asked, from the source on. More workers, two of them: its input
-- is fuller than its output by more than 0.35, or a worker keeps its core busy for more than 75 %. A larger queue, by
-- 4 and up to 128: a worker is below 35 % and its input below 0.5, or its output fuller than its input by more than
-- 0.35. The input is the queue of the next higher op_id that has one, also across branches, and full for the last.
-- AutoTune asks for no more workers than the machine has CPU threads, which is left out here.
--
-- Reads: pipeline_usage, train_batch?
-- Gives, one row per (rep, rank, pipeline_key, position), in that order:
--   rep                 bigint   repetition
--   rank                bigint   process rank
--   pipeline_key        varchar  equal keys are the same pipeline again
--   position            bigint   from 1, in the order in which it asks the operators
--   verdict             varchar  bottleneck | ok, of the whole pipeline; null when no batch has a queue depth
--   last_queue_ratio    double   0..1  mean fill of the last queue, read when a batch was taken; null when none has
--                                a depth
--   op_id               bigint   operator
--   op_type             varchar  such as MapOp
--   skipped             varchar  generator | non_mappable: never changed; null for the others
--   input_ratio         double   0..1  mean fill of its input; null when not measured
--   output_ratio        double   0..1  mean fill of its queue; null when not measured
--   cpu_pct_per_worker  double   %  of one core, per worker; null when not measured
--   workers             bigint   parallel workers
--   new_workers         bigint   what it would ask for; null when no change
--   workers_reason      varchar  queue | cpu; null when no change
--   prefetch            bigint   size of its queue
--   new_prefetch        bigint   what it would ask for; null when no change
--   is_changed          boolean  it would ask for a change
WITH last_queue AS (
  SELECT
    rep, rank, pipeline_key,
    avg(depth) / nullif(avg(capacity), 0) AS last_queue_ratio
  FROM train_batch
  WHERE side = 'host'
  GROUP BY ALL
),

feed AS (
  SELECT
    own.rep, own.rank, own.pipeline_key, own.op_id,
    min(producer.op_id) AS input_id
  FROM pipeline_usage AS own
  LEFT JOIN pipeline_usage AS producer
    ON
      own.rep = producer.rep
      AND own.rank = producer.rank
      AND own.pipeline_key = producer.pipeline_key
      AND own.op_id < producer.op_id
      AND producer.has_queue
  GROUP BY ALL
),

-- The operators without workers of their own are told by their type: in MindSpore's file they have one.
measured AS (
  SELECT
    own.rep, own.rank, own.pipeline_key, own.op_id, own.op_type, own.workers, own.capacity, last_queue.last_queue_ratio,
    CASE WHEN feed.input_id IS NULL THEN 1.0e0 ELSE producer.usage_ratio END AS input_ratio,
    own.usage_ratio AS output_ratio,
    100.0e0 * own.mean_cores / nullif(own.workers, 0) AS cpu_pct_per_worker,
    CASE
      WHEN own.op_type = 'GeneratorOp' THEN 'generator'
      WHEN
        own.op_type IN (
          'AGNewsOp', 'AmazonReviewOp', 'ClueOp', 'CoNLL2000Op', 'CsvOp', 'DBpediaOp', 'EnWik9Op', 'IWSLTOp',
          'Multi30kOp', 'PennTreebankOp', 'SQuADOp', 'SST2Op', 'SogouNewsOp', 'TFReaderOp', 'TextFileOp', 'UDPOSOp',
          'USPSOp', 'WikiTextOp', 'YahooAnswersOp', 'YelpReviewOp'
        )
        THEN 'non_mappable'
    END AS skipped
  FROM pipeline_usage AS own
  INNER JOIN feed USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN last_queue USING (rep, rank, pipeline_key)
  LEFT JOIN pipeline_usage AS producer
    ON
      feed.rep = producer.rep
      AND feed.rank = producer.rank
      AND feed.pipeline_key = producer.pipeline_key
      AND feed.input_id = producer.op_id
  WHERE
    own.workers > 0
    AND own.has_queue
    AND own.op_type NOT IN (
      'BarrierOp', 'BucketBatchByLengthOp', 'BuildSentencePieceVocabOp', 'ConcatOp', 'DataQueueOp', 'DeviceQueueOp',
      'EpochCtrlOp', 'ProjectOp', 'RenameOp', 'RepeatOp', 'ShuffleOp', 'SkipOp', 'TakeOp', 'ZipOp'
    )
),

-- 0.35 is a 4-byte float in AutoTune: 0.3499999940395355.
judged AS (
  SELECT
    *,
    CASE WHEN last_queue_ratio < 0.75e0 THEN 'bottleneck' WHEN last_queue_ratio >= 0.75e0 THEN 'ok' END AS verdict,
    CASE
      WHEN skipped IS NOT NULL OR last_queue_ratio IS NULL OR last_queue_ratio >= 0.75e0 THEN NULL
      WHEN input_ratio - output_ratio > 0.3499999940395355e0 THEN 'queue'
      WHEN cpu_pct_per_worker > 75.0e0 THEN 'cpu'
    END AS workers_reason,
    skipped IS NULL
    AND coalesce(last_queue_ratio < 0.75e0, FALSE)
    AND coalesce(
      cpu_pct_per_worker < 35.0e0
      AND (input_ratio < 0.5e0 OR output_ratio - input_ratio > 0.3499999940395355e0),
      FALSE
    ) AS wants_queue
  FROM measured
),

changed AS (
  SELECT
    *,
    CASE WHEN workers_reason IS NOT NULL THEN workers + 2 END AS new_workers
  FROM judged
)

SELECT
  rep, rank, pipeline_key,
  row_number() OVER (PARTITION BY rep, rank, pipeline_key ORDER BY op_id DESC) AS position,
  verdict, last_queue_ratio, op_id, op_type, skipped, input_ratio, output_ratio, cpu_pct_per_worker, workers,
  new_workers, workers_reason,
  capacity AS prefetch,
  CASE WHEN wants_queue THEN least(greatest(capacity + 4, coalesce(new_workers, workers)), 128) END AS new_prefetch,
  workers_reason IS NOT NULL OR wants_queue AS is_changed
FROM changed
ORDER BY rep, rank, pipeline_key, position

-- What MindInsight 2.3.1 says about the training pipelines, by the rules in its code; not our verdict.
--
-- Rule queues, over all batches: data_processing when more than 0.3 of them left an empty queue behind; else
-- data_transmission when the device-side queue was ever empty; else device_queue_warning, which in spite of its name
-- means that the input is fine. Rule pipeline, over all samples, warm-up included: inner when a queue in front is
-- fuller than the operator's own by more than 0.1; leaf when its queue is below 0.6; root, and nothing else, when no
-- other queue is below 0.8. Operators without a queue are looked through, as MindInsight's file does.
--
-- Reads: fetch, pipeline, pipeline_tree, queue_link, queue_sample
-- Gives, one row per (rep, rank, pipeline_key, position), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   position      bigint   0 is rule queues; from 1 the operators that rule pipeline names, in its order
--   rule          varchar  queues | pipeline
--   verdict       varchar  data_processing | data_transmission | device_queue_warning | inner | leaf | root
--   op_id         bigint   operator; null for rule queues
--   op_type       varchar  such as MapOp; null for rule queues
--   usage_ratio   double   0..1  mean fill of its queue; null for rule queues, and without samples
--   batches       bigint   batches with a queue depth; null for rule pipeline
--   empty         bigint   those that left an empty queue; null for rule pipeline
--   empty_share   double   0..1  empty / batches; null for rule pipeline
WITH batch AS (
  SELECT
    fetched.rep,
    fetched.rank,
    coalesce(pipeline.pipeline_key, CAST(fetched.pipeline_id AS VARCHAR)) AS pipeline_key,
    count(*) FILTER (WHERE fetched.side IN ('iterator', 'host_queue')) AS batches,
    count(*) FILTER (WHERE fetched.side IN ('iterator', 'host_queue') AND fetched.depth = 0) AS empty,
    count(*) FILTER (WHERE fetched.side = 'data_queue' AND fetched.depth = 0) AS device_empty
  FROM "fetch" AS fetched
  INNER JOIN pipeline
    ON fetched.rep = pipeline.rep AND fetched.rank = pipeline.rank AND fetched.pipeline_id = pipeline.pipeline_id
  WHERE pipeline.role = 'train' AND fetched.depth IS NOT NULL
  GROUP BY fetched.rep, fetched.rank, coalesce(pipeline.pipeline_key, CAST(fetched.pipeline_id AS VARCHAR))
),

-- One tree of each key: all of them are the same.
chosen AS (
  SELECT
    rep,
    rank,
    min(pipeline_id) AS pipeline_id
  FROM queue_sample
  WHERE role = 'train'
  GROUP BY rep, rank, pipeline_key
),

usage AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    op_id,
    avg(fill_ratio) AS usage_ratio
  FROM queue_sample
  WHERE role = 'train'
  GROUP BY rep, rank, pipeline_key, op_id
),

-- A queue without samples is read as 0.
link AS (
  SELECT
    queue_link.rep,
    queue_link.rank,
    queue_link.pipeline_key,
    queue_link.consumer_id,
    queue_link.producer_id,
    coalesce(usage.usage_ratio, 0.0e0) AS producer_ratio
  FROM queue_link
  INNER JOIN chosen
    ON
      queue_link.rep = chosen.rep
      AND queue_link.rank = chosen.rank
      AND queue_link.pipeline_id = chosen.pipeline_id
  LEFT JOIN usage
    ON
      queue_link.rep = usage.rep
      AND queue_link.rank = usage.rank
      AND queue_link.pipeline_key = usage.pipeline_key
      AND queue_link.producer_id = usage.op_id
),

producer AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    producer_id AS op_id
  FROM link
  GROUP BY rep, rank, pipeline_key, producer_id
),

intake AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    consumer_id AS op_id,
    max(producer_ratio) AS child_ratio
  FROM link
  GROUP BY rep, rank, pipeline_key, consumer_id
),

node AS (
  SELECT
    pipeline_tree.rep,
    pipeline_tree.rank,
    pipeline_tree.pipeline_key,
    pipeline_tree.op_id,
    pipeline_tree.op_type,
    pipeline_tree.consumer_id IS NULL AS is_root,
    usage.usage_ratio,
    coalesce(usage.usage_ratio, 0.0e0) AS own_ratio,
    intake.child_ratio
  FROM pipeline_tree
  INNER JOIN chosen
    ON
      pipeline_tree.rep = chosen.rep
      AND pipeline_tree.rank = chosen.rank
      AND pipeline_tree.pipeline_id = chosen.pipeline_id
  LEFT JOIN producer
    ON
      pipeline_tree.rep = producer.rep
      AND pipeline_tree.rank = producer.rank
      AND pipeline_tree.pipeline_key = producer.pipeline_key
      AND pipeline_tree.op_id = producer.op_id
  LEFT JOIN usage
    ON
      pipeline_tree.rep = usage.rep
      AND pipeline_tree.rank = usage.rank
      AND pipeline_tree.pipeline_key = usage.pipeline_key
      AND pipeline_tree.op_id = usage.op_id
  LEFT JOIN intake
    ON
      pipeline_tree.rep = intake.rep
      AND pipeline_tree.rank = intake.rank
      AND pipeline_tree.pipeline_key = intake.pipeline_key
      AND pipeline_tree.op_id = intake.op_id
  WHERE producer.op_id IS NOT NULL OR pipeline_tree.consumer_id IS NULL
),

judged AS (
  SELECT
    *,
    min(CASE WHEN is_root OR own_ratio >= 0.8e0 THEN 1 ELSE 0 END) OVER (
      PARTITION BY rep, rank, pipeline_key
    ) AS all_high,
    CASE
      WHEN is_root THEN 'root'
      WHEN child_ratio IS NULL AND own_ratio < 0.6e0 THEN 'leaf'
      WHEN child_ratio - own_ratio > 0.1e0 THEN 'inner'
    END AS verdict
  FROM node
),

named AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_key ORDER BY CASE verdict WHEN 'leaf' THEN 1 ELSE 0 END, op_id
    ) AS position,
    'pipeline' AS rule,
    verdict,
    op_id,
    op_type,
    usage_ratio,
    CAST(NULL AS BIGINT) AS batches,
    CAST(NULL AS BIGINT) AS empty
  FROM judged
  WHERE (all_high = 1 AND verdict = 'root') OR (all_high = 0 AND verdict IN ('inner', 'leaf'))
  UNION ALL
  SELECT
    rep,
    rank,
    pipeline_key,
    0 AS position,
    'queues' AS rule,
    CASE
      WHEN empty > 0.3e0 * batches THEN 'data_processing'
      WHEN device_empty > 0 THEN 'data_transmission'
      ELSE 'device_queue_warning'
    END AS verdict,
    CAST(NULL AS BIGINT) AS op_id,
    CAST(NULL AS VARCHAR) AS op_type,
    CAST(NULL AS DOUBLE) AS usage_ratio,
    batches,
    empty
  FROM batch
  WHERE batches > 0
)

SELECT
  rep,
  rank,
  pipeline_key,
  position,
  rule,
  verdict,
  op_id,
  op_type,
  usage_ratio,
  batches,
  empty,
  empty / nullif(batches, 0) AS empty_share
FROM named
ORDER BY rep, rank, pipeline_key, position

-- What MindInsight 2.3.1 says about the training pipelines, by the rules in its code; not our verdict.
--
-- Rule queues, over all batches: data_processing when more than 0.3 of them left an empty queue behind; else
-- data_transmission when the device-side queue was ever empty; else device_queue_warning, which in spite of its name
-- means that the input is fine. Rule pipeline, over all samples, warm-up included: inner when a queue in front is
-- fuller than the operator's own by more than 0.1; leaf when its queue is below 0.6; root, and nothing else, when no
-- other queue is below 0.8. The fill is the one that the source states (minddata_pipeline_raw), else the mean of the
-- samples. Operator 0 is the root. Operators without a queue are looked through, and a queue without samples is read as
-- empty, as MindInsight does. Its advice names the operators of rule pipeline from the last position to the first; the
-- root gets none.
--
-- Reads: pipeline_usage?, queue_link?, train_batch?, train_pipeline?
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, position), in that order:
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_key   varchar  equal keys are the same pipeline again
--   position       bigint   0 is rule queues; from 1 the operators that rule pipeline names, in its order
--   rule           varchar  queues | pipeline | none: rule pipeline had samples and names nothing
--   verdict        varchar  data_processing | data_transmission | device_queue_warning | inner | leaf | root; or null
--   op_id          bigint   operator; null for rule queues
--   op_type        varchar  such as MapOp; null for rule queues
--   usage_ratio    double   0..1  mean fill of its queue, see above; null for rule queues, and without samples
--   advice         varchar  dataset_op | map_op | batch_op | generator_op: the text it would get; null when none
--   batches        bigint   batches with a queue depth; null for rule pipeline
--   empty          bigint   those that left an empty queue; null for rule pipeline
--   empty_share    double   0..1  empty / batches; null for rule pipeline
--   empty_percent  double   %     as MindInsight shows it, rounded up; null for rule pipeline
WITH RECURSIVE batch AS (
  SELECT
    rep, rank, pipeline_key,
    count(*) FILTER (WHERE side = 'host') AS batches,
    count(*) FILTER (WHERE side = 'host' AND depth = 0) AS empty,
    count(*) FILTER (WHERE side = 'device' AND depth = 0) AS device_empty
  FROM train_batch
  GROUP BY ALL
),

link AS (
  SELECT
    queue_link.rep, queue_link.rank, queue_link.pipeline_key, queue_link.consumer_id, queue_link.producer_id,
    coalesce(pipeline_usage.stated_ratio, pipeline_usage.usage_ratio, 0.0e0) AS producer_ratio
  FROM queue_link
  INNER JOIN train_pipeline USING (rep, rank, pipeline_id)
  LEFT JOIN pipeline_usage
    ON
      queue_link.rep = pipeline_usage.rep
      AND queue_link.rank = pipeline_usage.rank
      AND queue_link.pipeline_key = pipeline_usage.pipeline_key
      AND queue_link.producer_id = pipeline_usage.op_id
),

-- MindInsight's file: breadth first from operator 0.
reached AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    0 AS level
  FROM pipeline_usage
  WHERE op_id = 0
  UNION ALL
  SELECT
    reached.rep, reached.rank, reached.pipeline_key,
    link.producer_id AS op_id,
    reached.level + 1 AS level
  FROM reached
  INNER JOIN link
    ON
      reached.rep = link.rep
      AND reached.rank = link.rank
      AND reached.pipeline_key = link.pipeline_key
      AND reached.op_id = link.consumer_id
  WHERE reached.level < 100
),

place AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    min(level) AS level
  FROM reached
  GROUP BY ALL
),

intake AS (
  SELECT
    rep, rank, pipeline_key,
    consumer_id AS op_id,
    max(producer_ratio) AS child_ratio
  FROM link
  GROUP BY ALL
),

node AS (
  SELECT
    rep, rank, pipeline_key, op_id, place.level, pipeline_usage.op_type,
    coalesce(pipeline_usage.stated_ratio, pipeline_usage.usage_ratio) AS usage_ratio,
    coalesce(pipeline_usage.stated_ratio, pipeline_usage.usage_ratio, 0.0e0) AS own_ratio,
    intake.child_ratio
  FROM place
  INNER JOIN pipeline_usage USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN intake USING (rep, rank, pipeline_key, op_id)
),

judged AS (
  SELECT
    *,
    min(CASE WHEN level = 0 OR own_ratio >= 0.8e0 THEN 1 ELSE 0 END) OVER (
      PARTITION BY rep, rank, pipeline_key
    ) AS all_high,
    CASE
      WHEN level = 0 THEN 'root'
      WHEN child_ratio IS NULL AND own_ratio < 0.6e0 THEN 'leaf'
      WHEN child_ratio - own_ratio > 0.1e0 THEN 'inner'
    END AS verdict
  FROM node
),

named AS (
  SELECT
    rep, rank, pipeline_key,
    row_number() OVER (
      PARTITION BY rep, rank, pipeline_key ORDER BY CASE verdict WHEN 'leaf' THEN 1 ELSE 0 END, level, op_id
    ) AS position,
    'pipeline' AS rule,
    verdict, op_id, op_type, usage_ratio, CASE
      WHEN verdict = 'root' THEN NULL
      WHEN verdict = 'leaf' THEN 'dataset_op'
      WHEN op_type = 'MapOp' THEN 'map_op'
      WHEN op_type = 'BatchOp' THEN 'batch_op'
      WHEN op_type = 'GeneratorOp' THEN 'generator_op'
    END AS advice
  FROM judged
  WHERE (all_high = 1 AND verdict = 'root') OR (all_high = 0 AND verdict IN ('inner', 'leaf'))
  UNION ALL BY NAME
  SELECT
    rep, rank, pipeline_key,
    1 AS position,
    'none' AS rule
  FROM judged
  GROUP BY ALL
  HAVING max(all_high) = 0 AND count(*) FILTER (WHERE verdict IN ('inner', 'leaf')) = 0
  UNION ALL BY NAME
  SELECT
    rep, rank, pipeline_key,
    0 AS position,
    'queues' AS rule,
    CASE
      WHEN empty > 0.3e0 * batches THEN 'data_processing'
      WHEN device_empty > 0 THEN 'data_transmission'
      ELSE 'device_queue_warning'
    END AS verdict,
    batches, empty
  FROM batch
  WHERE batches > 0
)

SELECT
  rep, rank, pipeline_key, position, rule, verdict, op_id, op_type, usage_ratio, advice, batches, empty,
  empty / nullif(batches, 0) AS empty_share,
  ceil(empty / nullif(batches, 0) * 100.0e0) AS empty_percent
FROM named
ORDER BY rep, rank, pipeline_key, position

-- MindInsight's documented queue rule on the training pipelines: which operator holds up the data.
--
-- inner: its input is fuller than 0.5 and its output emptier. source: every queue from it to the loop is emptier than
-- 0.5. sink: every queue is fuller than 0.5, so the last operator or the training loop is slow. drop_ratio says it
-- without thresholds: along a chain the drops add up to 1. Operators without a queue are looked through. The rule alone
-- may name several operators; the one it stands for is the named one with the lowest position, and where it names none
-- the largest drop, position 1, is the choice.
--
-- Reads: pipeline_tree?, queue_link, queue_sample?, train_pipeline
-- Takes:
--   $skip_share  double  share of each pipeline's sampled time left out at its start; 0.25 is usual
-- Gives, one row per (rep, rank, pipeline_key, position), in that order:
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   position      bigint   1 has the largest drop_ratio; of equals the lowest op_id
--   op_id         bigint   operator; -1 is the training loop
--   op_type       varchar  such as MapOp; consumer is the training loop
--   name          varchar  what it does
--   place         varchar  source | inner | sink | consumer; a lone source is no sink
--   input_ratio   double   0..1  mean fill of its input queue, the emptiest of several; null for a source
--   output_ratio  double   0..1  mean fill of its output queue; null without one
--   flag          varchar  inner | source | sink: the rule that names it; null when none does
--   drop_ratio    double   -1..1  input - output, with input 1 for a source and output 0 for the consumer
WITH RECURSIVE ratio AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    avg(fill_ratio) AS fill_ratio
  FROM queue_sample
  WHERE role = 'train' AND elapsed_share >= $skip_share
  GROUP BY ALL
),

link AS (
  SELECT
    queue_link.rep, queue_link.rank, queue_link.pipeline_key, queue_link.consumer_id, queue_link.producer_id,
    ratio.fill_ratio
  FROM queue_link
  INNER JOIN train_pipeline USING (rep, rank, pipeline_id)
  LEFT JOIN ratio
    ON
      queue_link.rep = ratio.rep
      AND queue_link.rank = ratio.rank
      AND queue_link.pipeline_key = ratio.pipeline_key
      AND queue_link.producer_id = ratio.op_id
),

intake AS (
  SELECT
    rep, rank, pipeline_key,
    consumer_id AS op_id,
    min(fill_ratio) AS input_ratio
  FROM link
  GROUP BY ALL
),

output AS (
  SELECT
    rep, rank, pipeline_key,
    producer_id AS op_id,
    max(fill_ratio) AS output_ratio
  FROM link
  GROUP BY ALL
),

-- From every operator that has a queue down to the loop.
path AS (
  SELECT
    rep, rank, pipeline_key,
    op_id AS from_id,
    op_id,
    1 AS links
  FROM output
  UNION ALL
  SELECT
    path.rep, path.rank, path.pipeline_key, path.from_id,
    link.consumer_id AS op_id,
    path.links + 1 AS links
  FROM path
  INNER JOIN link
    ON
      path.rep = link.rep
      AND path.rank = link.rank
      AND path.pipeline_key = link.pipeline_key
      AND path.op_id = link.producer_id
  WHERE path.links < 100
),

downstream AS (
  SELECT
    rep, rank, pipeline_key,
    path.from_id AS op_id,
    max(output.output_ratio) AS fullest_ratio
  FROM path
  INNER JOIN output USING (rep, rank, pipeline_key, op_id)
  GROUP BY ALL
),

whole AS (
  SELECT
    rep, rank, pipeline_key,
    min(fill_ratio) AS emptiest_ratio
  FROM link
  GROUP BY ALL
),

-- Operators with a queue, the sink with or without one, and the training loop.
node AS (
  SELECT
    rep, rank, pipeline_tree.pipeline_key, pipeline_tree.op_id, pipeline_tree.op_type, pipeline_tree.name,
    pipeline_tree.consumer_id IS NULL AS is_sink
  FROM pipeline_tree
  INNER JOIN train_pipeline USING (rep, rank, pipeline_id)
  UNION ALL
  SELECT
    rep, rank, pipeline_key,
    -1 AS op_id,
    'consumer' AS op_type,
    'training loop' AS name,
    FALSE AS is_sink
  FROM whole
),

measured AS (
  SELECT
    rep, rank, pipeline_key, node.op_id, node.op_type, node.name, CASE
      WHEN node.op_id = -1 THEN 'consumer'
      WHEN intake.op_id IS NULL THEN 'source'
      WHEN node.is_sink THEN 'sink'
      ELSE 'inner'
    END AS place,
    intake.input_ratio,
    output.output_ratio,
    output.op_id IS NOT NULL AS has_queue,
    downstream.fullest_ratio,
    whole.emptiest_ratio
  FROM node
  INNER JOIN whole USING (rep, rank, pipeline_key)
  LEFT JOIN intake USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN output USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN downstream USING (rep, rank, pipeline_key, op_id)
  WHERE output.op_id IS NOT NULL OR node.is_sink OR node.op_id = -1
),

judged AS (
  SELECT
    rep, rank, pipeline_key, op_id, op_type, name, place, input_ratio, output_ratio, CASE
      WHEN place = 'source' AND fullest_ratio < 0.5e0 THEN 'source'
      WHEN place IN ('inner', 'sink') AND input_ratio > 0.5e0 AND output_ratio < 0.5e0 THEN 'inner'
      WHEN (place = 'consumer' OR NOT has_queue) AND emptiest_ratio > 0.5e0 THEN 'sink'
    END AS flag,
    CASE WHEN place = 'source' THEN 1.0e0 ELSE input_ratio END
    - CASE WHEN place = 'consumer' THEN 0.0e0 ELSE output_ratio END AS drop_ratio
  FROM measured
)

SELECT
  rep, rank, pipeline_key,
  row_number() OVER (
    PARTITION BY rep, rank, pipeline_key ORDER BY drop_ratio DESC NULLS LAST, op_id ASC
  ) AS position,
  op_id, op_type, name, place, input_ratio, output_ratio, flag, drop_ratio
FROM judged
ORDER BY rep, rank, pipeline_key, position

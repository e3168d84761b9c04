-- MindInsight's documented queue rule on the training pipelines: which operator holds up the data.
--
-- inner: its input is fuller than 0.5 and its output emptier. source: every queue from it to the loop is emptier than
-- 0.5. sink: every queue is fuller than 0.5, so the last operator or the training loop is slow. drop_ratio says it
-- without thresholds: along a chain the drops add up to 1. Operators without a queue are looked through. The rule alone
-- may name several operators; the one it stands for is the named one with the lowest position, and where it names none
-- the largest drop, position 1, is the choice.
--
-- Reads: pipeline_tree, queue_link, queue_sample, train_pipeline
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
    rep,
    rank,
    pipeline_key,
    op_id,
    avg(fill_ratio) AS fill_ratio
  FROM queue_sample
  WHERE role = 'train' AND elapsed_share >= $skip_share
  GROUP BY rep, rank, pipeline_key, op_id
),

link AS (
  SELECT
    queue_link.rep,
    queue_link.rank,
    queue_link.pipeline_key,
    queue_link.consumer_id,
    queue_link.producer_id,
    ratio.fill_ratio
  FROM queue_link
  INNER JOIN train_pipeline
    ON
      queue_link.rep = train_pipeline.rep
      AND queue_link.rank = train_pipeline.rank
      AND queue_link.pipeline_id = train_pipeline.pipeline_id
  LEFT JOIN ratio
    ON
      queue_link.rep = ratio.rep
      AND queue_link.rank = ratio.rank
      AND queue_link.pipeline_key = ratio.pipeline_key
      AND queue_link.producer_id = ratio.op_id
),

intake AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    consumer_id AS op_id,
    min(fill_ratio) AS input_ratio
  FROM link
  GROUP BY rep, rank, pipeline_key, consumer_id
),

output AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    producer_id AS op_id,
    max(fill_ratio) AS output_ratio
  FROM link
  GROUP BY rep, rank, pipeline_key, producer_id
),

-- From every operator that has a queue down to the loop.
path AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    op_id AS from_id,
    op_id,
    1 AS links
  FROM output
  UNION ALL
  SELECT
    path.rep,
    path.rank,
    path.pipeline_key,
    path.from_id,
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
    path.rep,
    path.rank,
    path.pipeline_key,
    path.from_id AS op_id,
    max(output.output_ratio) AS fullest_ratio
  FROM path
  INNER JOIN output
    ON
      path.rep = output.rep
      AND path.rank = output.rank
      AND path.pipeline_key = output.pipeline_key
      AND path.op_id = output.op_id
  GROUP BY path.rep, path.rank, path.pipeline_key, path.from_id
),

whole AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    min(fill_ratio) AS emptiest_ratio
  FROM link
  GROUP BY rep, rank, pipeline_key
),

-- Operators with a queue, the sink with or without one, and the training loop.
node AS (
  SELECT
    pipeline_tree.rep,
    pipeline_tree.rank,
    pipeline_tree.pipeline_key,
    pipeline_tree.op_id,
    pipeline_tree.op_type,
    pipeline_tree.name,
    pipeline_tree.consumer_id IS NULL AS is_sink
  FROM pipeline_tree
  INNER JOIN train_pipeline
    ON
      pipeline_tree.rep = train_pipeline.rep
      AND pipeline_tree.rank = train_pipeline.rank
      AND pipeline_tree.pipeline_id = train_pipeline.pipeline_id
  UNION ALL
  SELECT
    rep,
    rank,
    pipeline_key,
    -1 AS op_id,
    'consumer' AS op_type,
    'training loop' AS name,
    FALSE AS is_sink
  FROM whole
),

measured AS (
  SELECT
    node.rep,
    node.rank,
    node.pipeline_key,
    node.op_id,
    node.op_type,
    node.name,
    CASE
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
  INNER JOIN whole
    ON node.rep = whole.rep AND node.rank = whole.rank AND node.pipeline_key = whole.pipeline_key
  LEFT JOIN intake
    ON
      node.rep = intake.rep
      AND node.rank = intake.rank
      AND node.pipeline_key = intake.pipeline_key
      AND node.op_id = intake.op_id
  LEFT JOIN output
    ON
      node.rep = output.rep
      AND node.rank = output.rank
      AND node.pipeline_key = output.pipeline_key
      AND node.op_id = output.op_id
  LEFT JOIN downstream
    ON
      node.rep = downstream.rep
      AND node.rank = downstream.rank
      AND node.pipeline_key = downstream.pipeline_key
      AND node.op_id = downstream.op_id
  WHERE output.op_id IS NOT NULL OR node.is_sink OR node.op_id = -1
),

judged AS (
  SELECT
    rep,
    rank,
    pipeline_key,
    op_id,
    op_type,
    name,
    place,
    input_ratio,
    output_ratio,
    CASE
      WHEN place = 'source' AND fullest_ratio < 0.5e0 THEN 'source'
      WHEN place IN ('inner', 'sink') AND input_ratio > 0.5e0 AND output_ratio < 0.5e0 THEN 'inner'
      WHEN (place = 'consumer' OR NOT has_queue) AND emptiest_ratio > 0.5e0 THEN 'sink'
    END AS flag,
    CASE WHEN place = 'source' THEN 1.0e0 ELSE input_ratio END
    - CASE WHEN place = 'consumer' THEN 0.0e0 ELSE output_ratio END AS drop_ratio
  FROM measured
)

SELECT
  rep,
  rank,
  pipeline_key,
  row_number() OVER (
    PARTITION BY rep, rank, pipeline_key ORDER BY drop_ratio DESC NULLS LAST, op_id ASC
  ) AS position,
  op_id,
  op_type,
  name,
  place,
  input_ratio,
  output_ratio,
  flag,
  drop_ratio
FROM judged
ORDER BY rep, rank, pipeline_key, position

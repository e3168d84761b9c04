-- Which queues an operator of a dataset graph takes its input from: those of the nearest producers that have one.
--
-- Operators without a queue (inlined into their consumer) are looked through. The training loop is the consumer -1.
--
-- Reads: pipeline_tree, queue?
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_id, consumer_id, producer_id):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_id   bigint   the iterator's tree
--   pipeline_key  varchar  equal keys are the same pipeline again
--   consumer_id   bigint   op_id of any operator, -1 for the training loop
--   producer_id   bigint   op_id of a nearest producer that has a queue
WITH RECURSIVE sampled AS (
  SELECT
    rep, rank, pipeline_id, op_id
  FROM queue
  GROUP BY ALL
),

node AS (
  SELECT
    rep, rank, pipeline_id, pipeline_tree.pipeline_key, op_id,
    coalesce(pipeline_tree.consumer_id, -1) AS consumer_id,
    sampled.op_id IS NOT NULL OR (pipeline_tree.capacity IS NOT NULL AND NOT pipeline_tree.inlined) AS has_queue
  FROM pipeline_tree
  LEFT JOIN sampled USING (rep, rank, pipeline_id, op_id)
),

link AS (
  SELECT
    rep, rank, pipeline_id, pipeline_key, consumer_id,
    op_id AS producer_id,
    has_queue,
    1 AS links
  FROM node
  UNION ALL
  SELECT
    link.rep, link.rank, link.pipeline_id, link.pipeline_key, link.consumer_id,
    node.op_id AS producer_id,
    node.has_queue,
    link.links + 1 AS links
  FROM link
  INNER JOIN node
    ON
      link.rep = node.rep
      AND link.rank = node.rank
      AND link.pipeline_id = node.pipeline_id
      AND link.producer_id = node.consumer_id
  -- The limit ends the search in a file whose operators are each other's consumers.
  WHERE NOT link.has_queue AND link.links < 100
)

SELECT
  rep, rank, pipeline_id, pipeline_key, consumer_id, producer_id
FROM link
WHERE has_queue

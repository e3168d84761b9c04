-- Every operator of a dataset graph with each of the operators that consume its rows, directly or not.
--
-- Of several direct consumers the one with the lowest number counts, as in pipeline_tree.
--
-- Reads: pipeline_tree
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_id, op_id, consumer_id):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_id    bigint   the iterator's tree
--   op_id          bigint   operator of that pipeline
--   consumer_id    bigint   one that consumes its rows
--   consumer_type  varchar  such as BatchOp
--   links          bigint   from the one to the other: 1 for a direct consumer
WITH RECURSIVE below AS (
  SELECT
    rep, rank, pipeline_id, op_id, consumer_id,
    CAST(1 AS BIGINT) AS links
  FROM pipeline_tree
  WHERE consumer_id IS NOT NULL
  UNION ALL
  -- The limit ends the search in a graph that is no tree.
  SELECT
    below.rep, below.rank, below.pipeline_id, below.op_id, pipeline_tree.consumer_id,
    below.links + 1 AS links
  FROM below
  INNER JOIN pipeline_tree
    ON
      below.rep = pipeline_tree.rep
      AND below.rank = pipeline_tree.rank
      AND below.pipeline_id = pipeline_tree.pipeline_id
      AND below.consumer_id = pipeline_tree.op_id
  WHERE pipeline_tree.consumer_id IS NOT NULL AND below.links < 100
)

SELECT
  below.rep, below.rank, below.pipeline_id, below.op_id, below.consumer_id,
  pipeline_tree.op_type AS consumer_type,
  min(below.links) AS links
FROM below
INNER JOIN pipeline_tree
  ON
    below.rep = pipeline_tree.rep
    AND below.rank = pipeline_tree.rank
    AND below.pipeline_id = pipeline_tree.pipeline_id
    AND below.consumer_id = pipeline_tree.op_id
GROUP BY ALL

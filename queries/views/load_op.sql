-- The operators of the training pipelines, once per key, with the training loop as operator -1.
--
-- Of the trees with the same key the one with the most queues stands for all, of equals the first.
--
-- Reads: pipeline_below?, pipeline_edge?, pipeline_tree
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep             bigint   repetition
--   rank            bigint   process rank
--   pipeline_key    varchar  equal keys are the same pipeline again
--   pipeline_id     bigint   the tree that stands for the key
--   op_id           bigint   operator; -1 is the training loop
--   op_type         varchar  such as MapOp; consumer is the training loop
--   name            varchar  what it does
--   workers         bigint   rows it works on at a time; 1 for the training loop
--   capacity        bigint   size of its output queue; null when it has none
--   is_python       boolean  runs the user's Python; null when unknown
--   uses_processes  boolean  its Python runs in worker processes; null when unknown
--   iterated        boolean  a Python source whose rows are taken one after the other; null when unknown
--   wrapped         boolean  a Python source that hands on the rows of a MindSpore dataset; null when unknown
--   node            bigint   position in the user's dataset graph; null when unknown
--   site            varchar  file:line of the call that made it; null when unknown
--   code            varchar  file:line of its Python function or class; null when unknown
--   inlined         boolean  runs inside its consumer; null for the training loop
--   is_leaf         boolean  no operator produces for it
--   is_sink         boolean  hands its batches to the training loop itself
--   below_concat    boolean  a ConcatOp consumes it, directly or not, so it works only part of the time
--   below_filter    boolean  a FilterOp consumes it, directly or not, so not all of its rows arrive
--   below_zip       boolean  a ZipOp consumes it, directly or not
WITH best AS (
  SELECT
    rep, rank, pipeline_key, pipeline_id
  FROM pipeline_tree
  WHERE role = 'train'
  GROUP BY rep, rank, pipeline_key, pipeline_id
  QUALIFY
    row_number() OVER (PARTITION BY rep, rank, pipeline_key ORDER BY count(capacity) DESC, pipeline_id ASC) = 1
),

node AS (
  SELECT
    rep, rank, pipeline_tree.pipeline_key, pipeline_id, pipeline_tree.op_id, pipeline_tree.op_type, pipeline_tree.name,
    pipeline_tree.workers, pipeline_tree.capacity, pipeline_tree.is_python, pipeline_tree.uses_processes,
    pipeline_tree.iterated, pipeline_tree.wrapped, pipeline_tree.inlined, pipeline_tree.node, pipeline_tree.site,
    pipeline_tree.code,
    pipeline_tree.consumer_id
  FROM pipeline_tree
  SEMI JOIN best USING (rep, rank, pipeline_id)
),

place AS (
  SELECT
    rep, rank, pipeline_id, op_id,
    bool_or(consumer_type = 'ConcatOp') AS below_concat,
    bool_or(consumer_type = 'FilterOp') AS below_filter,
    bool_or(consumer_type = 'ZipOp') AS below_zip
  FROM pipeline_below
  GROUP BY ALL
),

producer AS (
  SELECT
    rep, rank, pipeline_id,
    consumer_id AS op_id
  FROM pipeline_edge
  GROUP BY ALL
),

everything AS (
  SELECT
    rep, rank, node.pipeline_key, pipeline_id, op_id, node.op_type, node.name,
    coalesce(node.workers, 1) AS workers,
    node.capacity, node.is_python, node.uses_processes, node.iterated, node.wrapped, node.inlined,
    node.node, node.site, node.code,
    producer.op_id IS NULL AS is_leaf,
    node.consumer_id IS NULL AND NOT node.inlined AS is_sink,
    coalesce(place.below_concat, FALSE) AS below_concat,
    coalesce(place.below_filter, FALSE) AS below_filter,
    coalesce(place.below_zip, FALSE) AS below_zip
  FROM node
  LEFT JOIN place USING (rep, rank, pipeline_id, op_id)
  LEFT JOIN producer USING (rep, rank, pipeline_id, op_id)
  UNION ALL BY NAME
  SELECT
    rep, rank, pipeline_key, pipeline_id,
    -1 AS op_id,
    'consumer' AS op_type,
    'training loop' AS name,
    1 AS workers,
    FALSE AS is_leaf,
    FALSE AS is_sink,
    FALSE AS below_concat,
    FALSE AS below_filter,
    FALSE AS below_zip
  FROM best
)

SELECT
  rep, rank, pipeline_key, pipeline_id, op_id, op_type, name, workers, capacity, is_python, uses_processes, iterated,
  wrapped, node, site, code, inlined, is_leaf, is_sink, below_concat, below_filter, below_zip
FROM everything

-- The operators of each dataset pipeline, once per key.
--
-- Reads: pipeline_tree
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep             bigint   repetition
--   rank            bigint   process rank
--   pipeline_key    varchar  equal keys are the same pipeline again
--   role            varchar  train | eval | hidden | other; null when not known
--   pipeline_id     bigint   the tree that stands for the key
--   op_id           bigint   operator of that pipeline; 0 is nearest the training loop
--   op_type         varchar  such as MapOp
--   name            varchar  what it does
--   workers         bigint   parallel workers
--   capacity        bigint   size of its output queue; null when it has none
--   is_python       boolean  runs the user's Python; null when unknown
--   uses_processes  boolean  its Python runs in worker processes; null when unknown
--   inlined         boolean  runs inside its consumer and has no queue
--   consumer_id     bigint   op_id of its consumer, of several the lowest; null at the sink
WITH best AS (
  SELECT
    rep, rank, pipeline_key, pipeline_id
  FROM pipeline_tree
  GROUP BY rep, rank, pipeline_key, pipeline_id
  QUALIFY
    row_number() OVER (PARTITION BY rep, rank, pipeline_key ORDER BY count(capacity) DESC, pipeline_id ASC) = 1
)

SELECT
  rep, rank, pipeline_tree.pipeline_key, pipeline_tree.role, pipeline_id, pipeline_tree.op_id, pipeline_tree.op_type,
  pipeline_tree.name, pipeline_tree.workers, pipeline_tree.capacity, pipeline_tree.is_python,
  pipeline_tree.uses_processes, pipeline_tree.inlined, pipeline_tree.consumer_id
FROM pipeline_tree
SEMI JOIN best USING (rep, rank, pipeline_id)
ORDER BY rep, rank, pipeline_tree.pipeline_key, pipeline_tree.op_id

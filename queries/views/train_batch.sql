-- Batches of the training pipelines that left a known number in the queue they were taken from.
--
-- The host side is the queue to the device when there is one, as MindSpore and MindInsight read it; else the dataset
-- iterator's.
--
-- Reads: fetch, pipeline
-- Gives, one row per (rep, rank, pipeline_id, side, fetch):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_id   bigint   the iterator's tree
--   pipeline_key  varchar  equal keys are the same pipeline again
--   side          varchar  host | device
--   fetch         bigint   position within the iterator, from 0
--   t_ns          bigint   ns       the loop had the batch; null when not known
--   depth         bigint   batches  left in the queue
--   capacity      bigint   batches  of the queue
WITH known AS (
  SELECT
    fetched.rep, fetched.rank, fetched.pipeline_id,
    coalesce(pipeline.pipeline_key, CAST(fetched.pipeline_id AS VARCHAR)) AS pipeline_key,
    fetched.side,
    fetched."fetch",
    fetched.start_ns + fetched.wait_ns AS t_ns,
    fetched.depth, fetched.capacity
  FROM "fetch" AS fetched
  INNER JOIN pipeline USING (rep, rank, pipeline_id)
  WHERE pipeline.role = 'train' AND fetched.depth IS NOT NULL
),

marked AS (
  SELECT
    *,
    max(CASE WHEN side = 'host_queue' THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank, pipeline_key) AS has_host_queue
  FROM known
)

SELECT
  rep, rank, pipeline_id, pipeline_key,
  CASE WHEN side = 'data_queue' THEN 'device' ELSE 'host' END AS side,
  "fetch",
  t_ns, depth, capacity
FROM marked
WHERE side IN ('data_queue', 'host_queue') OR (side = 'iterator' AND has_host_queue = 0)

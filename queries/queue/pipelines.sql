-- The dataset pipelines of each rank, and how long the loop waited for each.
--
-- Reads: fetch?, pipeline
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key), in that order:
--   rep                 bigint   repetition
--   rank                bigint   process rank
--   pipeline_key        varchar  equal keys are the same pipeline again; the pipeline_id as text when there is no key
--   role                varchar  train | eval | hidden | other; null when not known
--   site                varchar  file:line that created it
--   batch_size          bigint   rows  of the outermost batch operator
--   iterators           bigint   how often it was made
--   queues              varchar  what became of its queue samples; recorded if they were for any of its iterators
--   batches             bigint   batches fetched
--   wait_ns             bigint   ns    summed time the loop waited for them, the first ones included
--   first_batch_ns      bigint   ns    longest wait for a first batch; null when none was fetched
--   build_ns            bigint   ns    summed time it took to make the iterators
WITH fetched AS (
  SELECT
    rep, rank, pipeline_id,
    count(*) AS batches,
    CAST(sum(wait_ns) AS BIGINT) AS wait_ns,
    max(wait_ns) FILTER (WHERE "fetch" = 0) AS first_batch_ns
  FROM "fetch"
  WHERE coalesce(side, 'iterator') <> 'data_queue'
  GROUP BY ALL
)

SELECT
  rep, rank,
  coalesce(pipeline.pipeline_key, CAST(pipeline_id AS VARCHAR)) AS pipeline_key,
  min(pipeline.role) AS role,
  min(pipeline.site) AS site,
  max(pipeline.batch_size) AS batch_size,
  count(*) AS iterators,
  max(pipeline.queues) AS queues,
  CAST(sum(coalesce(fetched.batches, 0)) AS BIGINT) AS batches,
  CAST(sum(coalesce(fetched.wait_ns, 0)) AS BIGINT) AS wait_ns,
  max(fetched.first_batch_ns) AS first_batch_ns,
  CAST(sum(pipeline.ready_ns - pipeline.created_ns) AS BIGINT) AS build_ns
FROM pipeline
LEFT JOIN fetched USING (rep, rank, pipeline_id)
GROUP BY ALL
ORDER BY rep, rank, pipeline_key

-- What an epoch of a training takes to start the workers of its loader, and to end them.
--
-- The first batch is waited for while they start, and while it is made, which takes as long as the longest other wait.
--
-- Of loaders that the training iterates again and that do not keep their workers.
--
-- Reads: fetch?, pipeline, pipeline_window
-- Gives, one row per (rep, rank, pipeline_key):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_key   varchar  equal keys are the same pipeline again
--   restart_ns     double   ns       mean over the epochs behind the first
--   epoch_batches  double   batches  mean of what its iterators handed out
WITH first_wait AS (
  SELECT
    rep, rank, pipeline_id,
    greatest(0, arg_min(wait_ns, "fetch") - max(wait_ns) FILTER (WHERE "fetch" > 0)) AS longer_ns
  FROM "fetch"
  GROUP BY ALL
)

SELECT
  rep, rank, pipeline_window.pipeline_key,
  avg(
    pipeline.ready_ns - pipeline.created_ns + coalesce(first_wait.longer_ns, 0) + coalesce(pipeline.closing_ns, 0)
  ) FILTER (WHERE pipeline.iteration > 0) AS restart_ns,
  avg(pipeline_window.batches) AS epoch_batches
FROM pipeline_window
INNER JOIN pipeline USING (rep, rank, pipeline_id)
LEFT JOIN first_wait USING (rep, rank, pipeline_id)
WHERE pipeline_window.role = 'train'
GROUP BY ALL
HAVING max(pipeline.iteration) > 0

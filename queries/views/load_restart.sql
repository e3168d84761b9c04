-- What an epoch of a training takes to start the workers of its loader, and to end them: outside of all steps.
--
-- Of loaders that the training iterates again and that do not keep their workers.
--
-- Reads: pipeline, pipeline_window
-- Gives, one row per (rep, rank, pipeline_key):
--   rep            bigint   repetition
--   rank           bigint   process rank
--   pipeline_key   varchar  equal keys are the same pipeline again
--   restart_ns     double   ns       mean over the epochs behind the first
--   epoch_batches  double   batches  mean of what its iterators handed out
SELECT
  rep, rank, pipeline_window.pipeline_key,
  avg(pipeline.ready_ns - pipeline.created_ns + coalesce(pipeline.closing_ns, 0)) FILTER (WHERE pipeline.iteration > 0)
    AS restart_ns,
  avg(pipeline_window.batches) AS epoch_batches
FROM pipeline_window
INNER JOIN pipeline USING (rep, rank, pipeline_id)
WHERE pipeline_window.role = 'train'
GROUP BY ALL
HAVING max(pipeline.iteration) > 0

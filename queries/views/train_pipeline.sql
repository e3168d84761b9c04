-- The dataset graph that stands for each training pipeline: of graphs with an equal key, which are all the same, the
-- first that has queue samples.
--
-- Reads: queue_sample
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   pipeline_id   bigint   the iterator's tree
SELECT
  rep, rank, pipeline_key,
  min(pipeline_id) AS pipeline_id
FROM queue_sample
WHERE role = 'train'
GROUP BY ALL

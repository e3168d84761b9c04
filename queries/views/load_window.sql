-- When the training pipelines were in their steady state, all iterators of one pipeline together.
--
-- Reads: pipeline_window
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key):
--   rep           bigint   repetition
--   rank          bigint   process rank
--   pipeline_key  varchar  equal keys are the same pipeline again
--   from_ns       bigint   ns  it begins
--   to_ns         bigint   ns  it ends
SELECT
  rep, rank, pipeline_key,
  min(from_ns) AS from_ns,
  max(to_ns) AS to_ns
FROM pipeline_window
WHERE role = 'train'
GROUP BY ALL

-- Evaluations, each from its first step to its last. Meanwhile nothing is taken from the training's pipelines.
--
-- Reads: step
-- Kept: yes
-- Gives, one row per (rep, rank, start_ns):
--   rep       bigint  repetition
--   rank      bigint  process rank
--   start_ns  bigint  ns  start
--   end_ns    bigint  ns  end
SELECT
  rep, rank,
  min(start_ns) AS start_ns,
  max(end_ns) AS end_ns
FROM step
WHERE kind = 'eval'
GROUP BY rep, rank, step - kind_step

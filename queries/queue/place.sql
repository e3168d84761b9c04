-- Where the code of each dataset operator is, once per pipeline.
--
-- Reads: pipeline_tree
-- Takes:
--   $rep   bigint  this repetition
--   $rank  bigint  this rank
-- Gives, one row per (pipeline_key, op_id), in that order:
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   the operator
--   site          varchar  file:line of the call that made it; null when unknown
--   code          varchar  file:line of its Python function or class; null when unknown
SELECT
  pipeline_key, op_id,
  min(site) AS site,
  min(code) AS code
FROM pipeline_tree
WHERE rep = $rep AND rank = $rank
GROUP BY ALL
ORDER BY pipeline_key, op_id

-- How often the queue behind each dataset operator was how full, over all samples of a rank.
--
-- Reads: queue_sample
-- Takes:
--   $bins  bigint  classes of the fill, the last with its upper end
--   $rep   bigint  this repetition
--   $rank  bigint  this rank
-- Gives, one row per (pipeline_key, op_id, bin), in that order:
--   pipeline_key  varchar  equal keys are the same pipeline again
--   op_id         bigint   the operator whose output queue it is
--   bin           bigint   from 0 (empty); classes without a sample are left out
--   samples       bigint   samples in it
--   share         double   0..1  of the queue's samples with a known fill
WITH placed AS (
  SELECT
    pipeline_key, op_id,
    CAST(least(floor(fill_ratio * $bins), $bins - 1) AS BIGINT) AS bin
  FROM queue_sample
  WHERE rep = $rep AND rank = $rank AND fill_ratio IS NOT NULL
)

SELECT
  pipeline_key, op_id, bin,
  count(*) AS samples,
  count(*) / nullif(sum(count(*)) OVER (PARTITION BY pipeline_key, op_id), 0) AS share
FROM placed
GROUP BY pipeline_key, op_id, bin
ORDER BY pipeline_key, op_id, bin

-- Who hands on to whom in each dataset graph.
--
-- Reads: pipeline_edge
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_id, producer_id, consumer_id), in that order:
--   rep          bigint  repetition
--   rank         bigint  process rank
--   pipeline_id  bigint  the iterator's tree
--   producer_id  bigint  op_id of the producer
--   consumer_id  bigint  op_id of the consumer
SELECT
  rep, rank, pipeline_id, producer_id, consumer_id
FROM pipeline_edge
WHERE producer_id IS NOT NULL AND consumer_id IS NOT NULL
GROUP BY ALL
ORDER BY rep, rank, pipeline_id, producer_id, consumer_id

-- Data sink mode: depth of the queues on the host and on the device over time, in equal parts of a rank's batches.
--
-- Reads: fetch
-- Ranks: apart
-- Takes:
--   $points  bigint  parts that the batches of each side are divided into; fewer where there are fewer batches
-- Gives, one row per (rep, rank, side, part), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   side         varchar  host_queue | data_queue
--   part         bigint   from 0
--   first_batch  bigint   its first batch
--   last_batch   bigint   its last
--   t_ns         bigint   ns    when its first batch was there; null when the source has no times
--   batches      bigint   batches with a size of the queue
--   mean_depth   double   batches left in the queue after each was taken
--   low_depth    bigint   least
--   capacity     bigint   most that it can hold; null when not known
WITH numbered AS (
  SELECT
    rep, rank, side, "fetch" AS batch, depth, capacity,
    start_ns + coalesce(wait_ns, 0) AS t_ns,
    row_number() OVER (PARTITION BY rep, rank, side ORDER BY pipeline_id ASC, "fetch" ASC) - 1 AS turn,
    count(*) OVER (PARTITION BY rep, rank, side) AS turns
  FROM "fetch"
  WHERE side IN ('host_queue', 'data_queue') AND depth IS NOT NULL
)

SELECT
  rep, rank, side,
  turn * least($points, turns) // turns AS part,
  min(batch) AS first_batch,
  max(batch) AS last_batch,
  min(t_ns) AS t_ns,
  count(*) AS batches,
  avg(depth) AS mean_depth,
  min(depth) AS low_depth,
  max(capacity) AS capacity
FROM numbered
GROUP BY ALL
ORDER BY rep, rank, side, part

-- Memory over time, from the lifetimes of tensors or blocks: the least and the most in equal parts of the time.
--
-- Of several devices this is the one that held the most at once.
--
-- Reads: live_memory
-- Takes:
--   $points  bigint  parts that the time is divided into
-- Gives, one row per (rep, rank, part), in that order:
--   rep          bigint  repetition
--   rank         bigint  process rank
--   device       varchar  that device; null where the source does not say
--   part         bigint  from 0; parts in which nothing changed are left out
--   t_ns         bigint  ns     the first change in the part
--   changes      bigint  moments at which it changed
--   first_bytes  bigint  bytes  after the first change
--   low_bytes    bigint  bytes  least after a change
--   high_bytes   bigint  bytes  most after a change
--   high_ns      bigint  ns     the first change with the most
--   last_bytes   bigint  bytes  after the last change
--   last_ns      bigint  ns     the last change
WITH extent AS (
  SELECT
    rep, rank,
    min(t_ns) AS first_ns,
    max(t_ns) + 1 AS end_ns
  FROM live_memory
  GROUP BY ALL
),

placed AS (
  SELECT
    live_memory.*,
    CAST(floor(
      (live_memory.t_ns - extent.first_ns) / nullif(extent.end_ns - extent.first_ns, 0) * $points
    ) AS BIGINT) AS part
  FROM live_memory
  INNER JOIN extent USING (rep, rank)
),

ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank, part ORDER BY live_bytes DESC, t_ns ASC) AS place
  FROM placed
)

SELECT
  rep, rank, device, part,
  min(t_ns) AS t_ns,
  count(*) AS changes,
  arg_min(live_bytes, t_ns) AS first_bytes,
  min(live_bytes) AS low_bytes,
  max(live_bytes) AS high_bytes,
  max(CASE WHEN place = 1 THEN t_ns END) AS high_ns,
  arg_max(live_bytes, t_ns) AS last_bytes,
  max(t_ns) AS last_ns
FROM ranked
GROUP BY ALL
ORDER BY rep, rank, part

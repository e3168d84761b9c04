-- How busy each device is: the share of the time in which it runs an operator, whatever its streams do side by side.
--
-- Of the training steps in which its operators were recorded; without steps, from its first operator to its last.
--
-- Reads: busy_piece, busy_span?
-- Ranks: apart
-- Gives, one row per (rep, rank, device), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   device       varchar  such as AI_CORE, GPU, CPU; empty where the source does not say
--   steps        bigint   steps; null where none is known
--   all_ns       bigint   ns    length of the steps, or of the time from the first operator to the last
--   busy_ns      bigint   ns    of it, in operators
--   busy_share   double   0..1  busy_ns / all_ns
--   least_share  double   0..1  of the least busy step; null without steps
--   least_step   bigint   that step; of equals the first
--   most_share   double   0..1  of the busiest step; null without steps
WITH ran AS (
  SELECT
    rep, rank, device, start_ns, end_ns,
    sum(end_ns - start_ns) OVER (PARTITION BY rep, rank, device ORDER BY start_ns ROWS UNBOUNDED PRECEDING)
    - (end_ns - start_ns) AS before_ns
  FROM busy_span
),

edge AS (
  SELECT
    rep, rank, device,
    start_ns AS at_ns
  FROM busy_piece
  UNION
  SELECT
    rep, rank, device,
    end_ns AS at_ns
  FROM busy_piece
),

reached AS (
  SELECT
    edge.rep, edge.rank, edge.device, edge.at_ns,
    coalesce(ran.before_ns + least(ran.end_ns, edge.at_ns) - ran.start_ns, 0) AS busy_ns
  FROM edge
  ASOF LEFT JOIN ran
    ON edge.rep = ran.rep AND edge.rank = ran.rank AND edge.device = ran.device AND edge.at_ns >= ran.start_ns
),

spent AS (
  SELECT
    rep, rank, device, busy_piece.kind_step, busy_piece.start_ns, busy_piece.end_ns,
    until.busy_ns - since.busy_ns AS busy_ns
  FROM busy_piece
  INNER JOIN reached AS since USING (rep, rank, device)
  INNER JOIN reached AS until USING (rep, rank, device)
  WHERE since.at_ns = busy_piece.start_ns AND until.at_ns = busy_piece.end_ns
),

shared AS (
  SELECT
    *,
    CASE WHEN kind_step IS NOT NULL THEN busy_ns / nullif(end_ns - start_ns, 0) END AS share
  FROM spent
),

placed AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank, device ORDER BY share ASC NULLS LAST, start_ns ASC) AS place
  FROM shared
)

SELECT
  rep, rank, device,
  nullif(count(kind_step), 0) AS steps,
  CAST(sum(end_ns - start_ns) AS BIGINT) AS all_ns,
  CAST(sum(busy_ns) AS BIGINT) AS busy_ns,
  sum(busy_ns) / nullif(sum(end_ns - start_ns), 0) AS busy_share,
  min(share) AS least_share,
  max(CASE WHEN place = 1 THEN kind_step END) AS least_step,
  max(share) AS most_share
FROM placed
GROUP BY ALL
ORDER BY rep, rank, device

-- How busy each device of a rank is over time: the steps in which its operators were recorded, in equal slices.
--
-- Without steps, the time from its first operator to its last.
--
-- Reads: busy_piece, busy_span?
-- Ranks: apart
-- Takes:
--   $rep     bigint  this repetition
--   $rank    bigint  this rank
--   $points  bigint  slices of a device, about; at least one for each step
-- Gives, one row per (device, start_ns), in that order:
--   device      varchar  such as AI_CORE, GPU, CPU; empty where the source does not say
--   start_ns    bigint   ns    start of the slice
--   end_ns      bigint   ns    its end
--   busy_share  double   0..1  of the slice, in operators
WITH parted AS (
  SELECT
    device, start_ns, end_ns,
    CAST(greatest(1, floor($points / nullif(count(*) OVER (PARTITION BY device), 0))) AS BIGINT) AS parts
  FROM busy_piece
  WHERE rep = $rep AND rank = $rank
),

numbered AS (
  SELECT
    device, start_ns, parts,
    (end_ns - start_ns) // parts AS whole_ns,
    (end_ns - start_ns) % parts AS rest_ns,
    unnest(range(parts)) AS part
  FROM parted
),

slice AS (
  SELECT
    device,
    start_ns + part * whole_ns + part * rest_ns // parts AS start_ns,
    start_ns + (part + 1) * whole_ns + (part + 1) * rest_ns // parts AS end_ns
  FROM numbered
),

ran AS (
  SELECT
    device, start_ns, end_ns,
    sum(end_ns - start_ns) OVER (PARTITION BY device ORDER BY start_ns ROWS UNBOUNDED PRECEDING)
    - (end_ns - start_ns) AS before_ns
  FROM busy_span
  WHERE rep = $rep AND rank = $rank
),

edge AS (
  SELECT
    device,
    start_ns AS at_ns
  FROM slice
  UNION
  SELECT
    device,
    end_ns AS at_ns
  FROM slice
),

reached AS (
  SELECT
    edge.device, edge.at_ns,
    coalesce(ran.before_ns + least(ran.end_ns, edge.at_ns) - ran.start_ns, 0) AS busy_ns
  FROM edge
  ASOF LEFT JOIN ran ON edge.device = ran.device AND edge.at_ns >= ran.start_ns
)

SELECT
  device, slice.start_ns, slice.end_ns,
  (until.busy_ns - since.busy_ns) / nullif(slice.end_ns - slice.start_ns, 0) AS busy_share
FROM slice
INNER JOIN reached AS since USING (device)
INNER JOIN reached AS until USING (device)
WHERE slice.end_ns > slice.start_ns AND since.at_ns = slice.start_ns AND until.at_ns = slice.end_ns
ORDER BY device, slice.start_ns

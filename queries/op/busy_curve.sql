-- How busy each device of a rank is over time: the steps in which its operators were recorded, in equal slices.
--
-- Without steps, the time from its first operator to its last.
--
-- Reads: busy_piece, busy_span
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

overlapped AS (
  SELECT
    slice.device, slice.start_ns, slice.end_ns,
    sum(least(busy_span.end_ns, slice.end_ns) - greatest(busy_span.start_ns, slice.start_ns)) AS busy_ns
  FROM slice
  INNER JOIN busy_span ON slice.device = busy_span.device
  WHERE
    busy_span.rep = $rep AND busy_span.rank = $rank
    AND busy_span.start_ns < slice.end_ns AND busy_span.end_ns > slice.start_ns
  GROUP BY ALL
)

SELECT
  device, start_ns, slice.end_ns,
  coalesce(overlapped.busy_ns, 0) / nullif(slice.end_ns - start_ns, 0) AS busy_share
FROM slice
LEFT JOIN overlapped USING (device, start_ns)
WHERE slice.end_ns > start_ns
ORDER BY device, start_ns

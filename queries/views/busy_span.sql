-- Times without a gap in which a device ran operators: the union of their executions over its streams and threads.
--
-- Of training and warm-up steps and of no known step, as in device_op. Where operators ran on a device, those that were
-- launched on the host do not count.
--
-- Reads: op_exec, op_mark?
-- Kept: yes
-- Gives, one row per (rep, rank, device, start_ns):
--   rep       bigint   repetition
--   rank      bigint   process rank
--   device    varchar  such as AI_CORE, GPU, CPU; else the track; empty where the source does not say
--   start_ns  bigint   ns  start
--   end_ns    bigint   ns  end
WITH ran AS (
  SELECT
    rep, rank,
    coalesce(device, CASE WHEN side = 'device' THEN track END, '') AS device,
    side, start_ns,
    start_ns + dur_ns AS end_ns,
    max(CASE WHEN side = 'device' THEN 1 ELSE 0 END) OVER (PARTITION BY rep, rank) AS has_device
  FROM op_exec
  ANTI JOIN op_mark USING (rep, rank, op_id)
  WHERE dur_ns > 0 AND (kind IS NULL OR kind IN ('train', 'warmup'))
),

counted AS (  -- once where several streams ran from the same to the same time: each has one place in the order
  SELECT DISTINCT rep, rank, device, start_ns, end_ns
  FROM ran
  WHERE side IS NULL OR side = 'device' OR has_device = 0
),

after_others AS (
  SELECT
    *,
    max(end_ns) OVER (
      PARTITION BY rep, rank, device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS before_ns
  FROM counted
),

numbered AS (
  SELECT
    *,
    sum(CASE WHEN start_ns <= before_ns THEN 0 ELSE 1 END) OVER (
      PARTITION BY rep, rank, device ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING
    ) AS span
  FROM after_others
)

SELECT
  rep, rank, device,
  min(start_ns) AS start_ns,
  max(end_ns) AS end_ns
FROM numbered
GROUP BY rep, rank, device, span

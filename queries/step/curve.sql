-- Times over the training steps of each rank, to be plotted: warm-up steps first, at most so many points.
--
-- With more steps than points, a point stands for several steps in a row: their means, and the longest step.
--
-- Reads: comm_part?, step
-- Takes:
--   $points  bigint  most points of each rank
--   $rep     bigint  this repetition; all when negative
--   $rank    bigint  this rank; all when negative
-- Gives, one row per (rep, rank, point), in that order:
--   rep                  bigint   repetition
--   rank                 bigint   process rank
--   point                bigint   from 0
--   first_step           bigint   position of its first step among all steps of the rank
--   last_step            bigint   position of its last step
--   first_kind_step      bigint   the first as a training step, from 0 with warm-up, as --step counts
--   last_kind_step       bigint   the last
--   steps                bigint   steps
--   warmup_steps         bigint   of them, warm-up
--   dur_ns               double   ns    mean length
--   max_ns               bigint   ns    longest
--   data_wait_ns         double   ns    mean of the phase before FP; null when FP is not known
--   forward_backward_ns  double   ns    mean of the phase from FP to BP; null when BP is not known
--   tail_ns              double   ns    mean of the phase behind BP; null when BP is not known
--   fetch_wait_ns        double   ns    mean time inside the dataset iterator; null when nothing was fetched
--   comm_ns              double   ns    mean communication; null where none was recorded
--   tail_comm_ns         double   ns    of it, behind BP
WITH numbered AS (
  SELECT
    rep, rank, step, step.kind,
    step.end_ns - step.start_ns AS dur_ns,
    step.fp_ns - step.start_ns AS data_wait_ns,
    CASE WHEN step.fp_ns IS NOT NULL THEN step.bp_ns - step.fp_ns END AS forward_backward_ns,
    CASE WHEN step.fp_ns IS NOT NULL THEN step.end_ns - step.bp_ns END AS tail_ns,
    step.fetch_wait_ns, comm_part.comm_ns, comm_part.tail_comm_ns,
    row_number() OVER (PARTITION BY rep, rank ORDER BY step ASC) - 1 AS turn,
    count(*) OVER (PARTITION BY rep, rank) AS turns
  FROM step
  LEFT JOIN comm_part USING (rep, rank, step)
  WHERE
    step.kind IN ('warmup', 'train')
    AND ($rep < 0 OR rep = $rep)
    AND ($rank < 0 OR rank = $rank)
),

pointed AS (
  SELECT
    *,
    CASE WHEN turns <= $points THEN turn ELSE CAST(floor(turn * $points / nullif(turns, 0)) AS BIGINT) END AS point
  FROM numbered
)

SELECT
  rep, rank, point,
  min(step) AS first_step,
  max(step) AS last_step,
  min(turn) AS first_kind_step,
  max(turn) AS last_kind_step,
  count(*) AS steps,
  count(CASE WHEN kind = 'warmup' THEN 1 END) AS warmup_steps,
  avg(dur_ns) AS dur_ns,
  max(dur_ns) AS max_ns,
  avg(data_wait_ns) AS data_wait_ns,
  avg(forward_backward_ns) AS forward_backward_ns,
  avg(tail_ns) AS tail_ns,
  avg(fetch_wait_ns) AS fetch_wait_ns,
  avg(comm_ns) AS comm_ns,
  avg(tail_comm_ns) AS tail_comm_ns
FROM pointed
GROUP BY ALL
ORDER BY rep, rank, point

-- What a device's operators were recorded in: training steps, or all of the time from the first to the last of them.
--
-- A step counts when an operator of the device began in it and in no later one; without any such step there is one row.
--
-- Reads: busy_span, op?, train_step?
-- Gives, one row per (rep, rank, device, start_ns):
--   rep        bigint   repetition
--   rank       bigint   process rank
--   device     varchar  as in busy_span
--   kind_step  bigint   the training step; null where none is known
--   start_ns   bigint   ns  start
--   end_ns     bigint   ns  end
WITH begun AS (
  SELECT
    rep, rank, kind_step,
    end_ns - dur_ns AS start_ns,
    end_ns
  FROM train_step
  SEMI JOIN op USING (rep, rank)
  QUALIFY row_number() OVER (PARTITION BY rep, rank, end_ns - dur_ns ORDER BY end_ns DESC, kind_step ASC) = 1
),

stepped AS (
  SELECT busy_span.rep, busy_span.rank, busy_span.device, begun.kind_step, begun.start_ns, begun.end_ns
  FROM busy_span
  ASOF INNER JOIN begun
    ON busy_span.rep = begun.rep AND busy_span.rank = begun.rank AND busy_span.start_ns >= begun.start_ns
  WHERE busy_span.start_ns < begun.end_ns
  GROUP BY ALL
),

whole AS (
  SELECT
    rep, rank, device,
    CAST(NULL AS BIGINT) AS kind_step,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns
  FROM busy_span
  GROUP BY ALL
),

piece AS (
  SELECT *
  FROM stepped
  UNION ALL
  SELECT whole.*
  FROM whole
  ANTI JOIN stepped USING (rep, rank, device)
)

SELECT
  rep, rank, device, kind_step, start_ns, end_ns
FROM piece

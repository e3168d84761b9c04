-- What is the same in every repetition of the same program: graphs, and sizes of the training's batches.
--
-- Of several ranks the graphs of all, and the largest sizes.
--
-- Reads: allocation?, pipeline?, run_part?
-- Gives, one row per (rep), in that order:
--   rep            bigint  repetition
--   compilations   bigint  graphs that were compiled; null when no part of the run was recorded
--   epoch_batches  bigint  batches  of the longest epoch that went to its end; null when none did
--   batch_rows     bigint  rows     of a batch; null when not known
--   batch_bytes    bigint  bytes    of the first batch; null when not known
--   allocations    bigint  blocks that were allocated, where the source records each; null else
WITH compiled AS (
  SELECT
    rep,
    CAST(
      coalesce(sum(count) FILTER (WHERE part IN ('compile', 'compile_eval', 'recompile')), 0) AS BIGINT
    ) AS compilations
  FROM run_part
  GROUP BY ALL
),

batches AS (
  SELECT
    rep,
    max(epoch_batches) AS epoch_batches,
    max(batch_size) AS batch_rows,
    max(batch_bytes) AS batch_bytes
  FROM pipeline
  WHERE role = 'train'
  GROUP BY ALL
),

allocated AS (
  SELECT
    rep,
    count(*) AS allocations
  FROM allocation
  WHERE evidence IS NULL
  GROUP BY ALL
)

SELECT rep, compilations, epoch_batches, batch_rows, batch_bytes, allocations
FROM compiled
FULL JOIN batches USING (rep)
FULL JOIN allocated USING (rep)
ORDER BY rep

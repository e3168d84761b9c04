-- How much of the time in training steps went to warm-up: the first step, and every step in which a graph was compiled.
--
-- Reads: span?, step
-- Ranks: apart
-- Gives, one row per (rep, rank), in that order:
--   rep             bigint   repetition
--   rank            bigint   process rank
--   warmup_steps    bigint   warm-up steps
--   later_steps     bigint   those behind the first training step
--   train_steps     bigint   other training steps
--   warmup_ns       bigint   ns    summed time of the warm-up steps
--   later_ns        bigint   ns    summed time of those behind the first training step
--   train_ns        bigint   ns    summed time of the other training steps
--   train_mean_ns   double   ns    mean of the other training steps; null when there are none
--   share           double   0..1  warmup_ns / (warmup_ns + train_ns)
--   compiles        bigint   graphs compiled within training steps
--   compile_ns      bigint   ns    their time within the steps
WITH training AS (
  SELECT
    rep, rank, step, kind, kind_step, start_ns, end_ns,
    end_ns - start_ns AS dur_ns
  FROM step
  WHERE kind IN ('warmup', 'train')
),

compiled AS (
  SELECT
    span.rep, span.rank,
    count(*) AS compiles,
    CAST(sum(least(span.start_ns + span.dur_ns, training.end_ns) - span.start_ns) AS BIGINT) AS compile_ns
  FROM span
  INNER JOIN training
    ON
      span.rep = training.rep
      AND span.rank = training.rank
      AND span.start_ns >= training.start_ns
      AND span.start_ns < training.end_ns
  WHERE span.category = 'compile' AND training.kind = 'warmup'
  GROUP BY ALL
)

SELECT
  rep, rank,
  count(*) FILTER (WHERE training.kind = 'warmup') AS warmup_steps,
  count(*) FILTER (WHERE training.kind = 'warmup' AND training.kind_step > 0) AS later_steps,
  count(*) FILTER (WHERE training.kind = 'train') AS train_steps,
  CAST(sum(CASE WHEN training.kind = 'warmup' THEN training.dur_ns ELSE 0 END) AS BIGINT) AS warmup_ns,
  CAST(sum(CASE WHEN training.kind = 'warmup' AND training.kind_step > 0 THEN training.dur_ns ELSE 0 END) AS BIGINT)
    AS later_ns,
  CAST(sum(CASE WHEN training.kind = 'train' THEN training.dur_ns ELSE 0 END) AS BIGINT) AS train_ns,
  avg(CASE WHEN training.kind = 'train' THEN training.dur_ns END) AS train_mean_ns,
  sum(CASE WHEN training.kind = 'warmup' THEN training.dur_ns ELSE 0 END)
  / nullif(sum(training.dur_ns), 0) AS share,
  coalesce(max(compiled.compiles), 0) AS compiles,
  coalesce(max(compiled.compile_ns), 0) AS compile_ns
FROM training
LEFT JOIN compiled USING (rep, rank)
GROUP BY ALL
ORDER BY rep, rank

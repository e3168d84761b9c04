-- Whether memory grows from step to step: the slope of its floor over the training steps, with an interval.
--
-- The training steps (warm-up steps and the first $skip_steps left out) are cut into $blocks equal blocks; the least
-- memory in each is its floor: what comes and goes within a step does not lift it, a leak does. The slope is the median
-- of the slopes of all pairs of blocks (Theil and Sen), which a jump near either end does not move. Its interval is
-- Sen's, from the distribution of Kendall's score, rounded outwards: P. K. Sen, J. Am. Stat. Assoc. 63 (1968) 1379.
--
-- Reads: memory_level, step
-- Takes:
--   $skip_steps  bigint  training steps left out at the start
--   $blocks      bigint  blocks
--   $z           double  quantile of the normal distribution, such as 2.58e0 for an interval of 99 %
-- Gives, one row per (rep, rank, device, name, pid), in that order:
--   rep               bigint          repetition
--   rank              bigint          process rank
--   device            varchar         host (whole machine) | process | CPU and others (the framework's pool)
--   name              varchar         what the process or the pool is; empty when it has no name
--   pid               bigint          of a process; 0 for others
--   steps             bigint          training steps in blocks with samples
--   samples           bigint          samples in them
--   blocks            bigint          blocks with samples
--   span_steps        double          steps from the middle of the first of these blocks to the middle of the last
--   first_bytes       bigint   bytes  floor of the first block
--   last_bytes        bigint   bytes  floor of the last block
--   rises             bigint          blocks with a higher floor than the block before
--   most_rise_bytes   bigint   bytes  largest rise from one block to the next; null for a single block
--   most_fall_bytes   bigint   bytes  largest fall from one block to the next; null for a single block
--   slope_bytes       double   bytes  growth from one step to the next; null for a single block
--   slope_low_bytes   double   bytes  lower end of the interval; null: it has none, for too few blocks
--   slope_high_bytes  double   bytes  upper end of the interval; null: it has none, for too few blocks
WITH numbered AS (
  SELECT
    rep, rank, kind_step, start_ns, end_ns,
    row_number() OVER (PARTITION BY rep, rank ORDER BY kind_step, start_ns) - 1 AS place,
    count(*) OVER (PARTITION BY rep, rank) AS steps
  FROM step
  WHERE kind = 'train' AND kind_step >= $skip_steps AND end_ns IS NOT NULL
),

block AS (
  SELECT
    rep, rank,
    CAST(floor(place * $blocks / nullif(steps, 0)) AS BIGINT) AS block,
    count(*) AS steps,
    avg(kind_step) AS middle,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns
  FROM numbered
  GROUP BY ALL
),

lowest AS (
  SELECT
    memory_level.rep, memory_level.rank, memory_level.device, memory_level.name, memory_level.pid, block.block,
    block.middle, block.steps,
    count(*) AS samples,
    min(memory_level.level_bytes) AS floor_bytes
  FROM memory_level
  INNER JOIN block
    ON
      memory_level.rep = block.rep
      AND memory_level.rank = block.rank
      AND memory_level.t_ns >= block.start_ns
      AND memory_level.t_ns < block.end_ns
  GROUP BY ALL
),

followed AS (
  SELECT
    *,
    lag(floor_bytes) OVER (PARTITION BY rep, rank, device, name, pid ORDER BY block) AS before_bytes,
    row_number() OVER (PARTITION BY rep, rank, device, name, pid ORDER BY block) AS from_first,
    row_number() OVER (PARTITION BY rep, rank, device, name, pid ORDER BY block DESC) AS from_last
  FROM lowest
),

course AS (
  SELECT
    rep, rank, device, name, pid,
    sum(steps) AS steps,
    sum(samples) AS samples,
    count(*) AS blocks,
    max(middle) - min(middle) AS span_steps,
    max(CASE WHEN from_first = 1 THEN floor_bytes END) AS first_bytes,
    max(CASE WHEN from_last = 1 THEN floor_bytes END) AS last_bytes,
    count(CASE WHEN floor_bytes > before_bytes THEN 1 END) AS rises,
    max(floor_bytes - before_bytes) AS most_rise_bytes,
    max(before_bytes - floor_bytes) AS most_fall_bytes,
    $z * $z * count(*) * (count(*) - 1) * (2 * count(*) + 5) / 18 AS reach
  FROM followed
  GROUP BY ALL
),

pair AS (
  SELECT
    one.rep, one.rank, one.device, one.name, one.pid,
    (two.floor_bytes - one.floor_bytes) / nullif(two.middle - one.middle, 0) AS slope
  FROM lowest AS one
  INNER JOIN lowest AS two
    ON
      one.rep = two.rep
      AND one.rank = two.rank
      AND one.device = two.device
      AND one.name = two.name
      AND one.pid = two.pid
      AND one.block < two.block
),

ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY rep, rank, device, name, pid ORDER BY slope) AS place,
    count(*) OVER (PARTITION BY rep, rank, device, name, pid) AS pairs
  FROM pair
),

line AS (
  SELECT
    rep, rank, device, name, pid,
    median(ranked.slope) AS slope_bytes,
    max(
      CASE
        WHEN
          2 * ranked.place <= ranked.pairs
          AND (ranked.pairs - 2 * ranked.place) * (ranked.pairs - 2 * ranked.place) >= course.reach
          THEN ranked.slope
      END
    ) AS slope_low_bytes,
    min(
      CASE
        WHEN
          2 * ranked.place - 2 >= ranked.pairs
          AND (2 * ranked.place - 2 - ranked.pairs) * (2 * ranked.place - 2 - ranked.pairs) >= course.reach
          THEN ranked.slope
      END
    ) AS slope_high_bytes
  FROM ranked
  INNER JOIN course USING (rep, rank, device, name, pid)
  GROUP BY ALL
)

SELECT
  rep, rank, device, name, pid,
  CAST(course.steps AS BIGINT) AS steps,
  CAST(course.samples AS BIGINT) AS samples,
  course.blocks, course.span_steps, course.first_bytes, course.last_bytes, course.rises, course.most_rise_bytes,
  course.most_fall_bytes, line.slope_bytes, line.slope_low_bytes, line.slope_high_bytes
FROM course
LEFT JOIN line USING (rep, rank, device, name, pid)
ORDER BY rep, rank, device, name, pid

-- How the training steps of a rank go over the run, in equal blocks, and what else changed with them.
--
-- Steps whose time counts, warm-up left out.
--
-- Reads: cpu_room?, cpu_use?, memory_level?, stage?, train_step
-- Ranks: apart
-- Takes:
--   $blocks  bigint  blocks
-- Gives, one row per (rep, rank, block), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   block            bigint   from 0
--   first_step       bigint   position of its first step among the rank's training steps
--   steps            bigint   steps
--   start_ns         bigint   ns     the first begins
--   end_ns           bigint   ns     the last ends
--   dur_ns           double   ns     median length
--   wait_ns          double   ns     median time inside the dataset iterator; null when nothing was fetched
--   compiled         bigint   graphs compiled
--   compile_ns       bigint   ns     time of that
--   neighbour_cores  double   cores  that other programs used; null when not sampled
--   throttled_share  double   0..1   of the time the job's control group was stopped; null when not counted
--   floor_bytes      bigint   bytes  least memory of the training process; null when not sampled
WITH placed AS (
  SELECT
    rep, rank, kind_step,
    end_ns - dur_ns AS start_ns,
    end_ns, dur_ns, fetch_wait_ns,
    row_number() OVER (PARTITION BY rep, rank ORDER BY step ASC) - 1 AS place,
    count(*) OVER (PARTITION BY rep, rank) AS places
  FROM train_step
  WHERE timed AND kind = 'train'
),

block AS (
  SELECT
    rep, rank,
    CAST(floor(place * $blocks / nullif(places, 0)) AS BIGINT) AS block,
    min(kind_step) AS first_step,
    count(*) AS steps,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    median(dur_ns) AS dur_ns,
    median(fetch_wait_ns) AS wait_ns
  FROM placed
  GROUP BY ALL
),

compiled AS (
  SELECT
    block.rep, block.rank, block.block,
    count(*) AS compiled,
    CAST(floor(sum(stage.dur_ns)) AS BIGINT) AS compile_ns
  FROM block
  INNER JOIN stage
    ON
      block.rep = stage.rep
      AND block.rank = stage.rank
      AND stage.stage = 'compile'
      AND block.start_ns <= stage.start_ns
      AND block.end_ns > stage.start_ns
  GROUP BY ALL
),

sampled AS (
  SELECT
    rep, rank, start_ns, end_ns,
    sum(CASE WHEN part = 'neighbour' THEN cpu_ns ELSE 0 END) AS neighbour_ns
  FROM cpu_use
  GROUP BY ALL
),

beside AS (
  SELECT
    block.rep, block.rank, block.block,
    sum(sampled.neighbour_ns) / nullif(sum(sampled.end_ns - sampled.start_ns), 0) AS neighbour_cores
  FROM block
  INNER JOIN sampled
    ON
      block.rep = sampled.rep
      AND block.rank = sampled.rank
      AND block.start_ns <= sampled.start_ns
      AND block.end_ns > sampled.start_ns
  GROUP BY ALL
),

stopped AS (
  SELECT
    block.rep, block.rank, block.block,
    sum(cpu_room.throttled_ns)
    / nullif(sum(CASE WHEN cpu_room.throttled_ns IS NOT NULL THEN cpu_room.end_ns - cpu_room.start_ns END), 0)
      AS throttled_share
  FROM block
  INNER JOIN cpu_room
    ON
      block.rep = cpu_room.rep
      AND block.rank = cpu_room.rank
      AND block.start_ns <= cpu_room.start_ns
      AND block.end_ns > cpu_room.start_ns
  GROUP BY ALL
),

held AS (
  SELECT
    block.rep, block.rank, block.block,
    min(memory_level.level_bytes) AS floor_bytes
  FROM block
  INNER JOIN memory_level
    ON
      block.rep = memory_level.rep
      AND block.rank = memory_level.rank
      AND memory_level.device = 'process'
      AND memory_level.name = 'trainer'
      AND block.start_ns <= memory_level.t_ns
      AND block.end_ns > memory_level.t_ns
  GROUP BY ALL
)

SELECT
  rep, rank, block, block.first_step, block.steps, block.start_ns, block.end_ns, block.dur_ns, block.wait_ns,
  coalesce(compiled.compiled, 0) AS compiled,
  coalesce(compiled.compile_ns, 0) AS compile_ns,
  beside.neighbour_cores, stopped.throttled_share, held.floor_bytes
FROM block
LEFT JOIN compiled USING (rep, rank, block)
LEFT JOIN beside USING (rep, rank, block)
LEFT JOIN stopped USING (rep, rank, block)
LEFT JOIN held USING (rep, rank, block)
ORDER BY rep, rank, block

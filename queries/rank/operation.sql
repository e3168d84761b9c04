-- What each rank did in the steps that all ranks have, for a replay of the step: whole passes, and communication.
--
-- A pass is an operator whose category is `pass`: one microbatch forward or backward through the part of the model that
-- a rank holds, the optimizer, a garbage collection. Operators inside a pass are not listed. With more steps than asked
-- for, evenly spaced ones.
--
-- Reads: collective?, op?, op_info, rank_peer, step, train_step
-- Takes:
--   $steps  bigint  most steps of each repetition
-- Gives, one row per (rep, position, rank, place), in that order:
--   rep         bigint   repetition
--   position    bigint   the step's number in the source, else among the rank's training steps
--   rank        bigint   process rank
--   place       bigint   from 1, in the order in which they began on the rank
--   start_ns    bigint   ns  start
--   end_ns      bigint   ns  end
--   track       varchar  stream of a communication event; empty for a pass
--   name        varchar  full name, in small letters
--   group_name  varchar  communication group; empty for a pass, and where there is none
--   kind        varchar  phase of a pass; kind of a communication event
--   peers       bigint   group of ranks that do the same work, see rank_peer
--   is_comm     boolean  a communication event
WITH train AS (
  SELECT
    rep, rank, step,
    coalesce(step.source_step, step.kind_step) AS position
  FROM train_step
  INNER JOIN step USING (rep, rank, step)
),

pass_info AS (
  SELECT
    rep, rank, op_id,
    coalesce(phase, 'other') AS phase,
    lower(coalesce(name, '')) AS name
  FROM op_info
  WHERE category = 'pass'
),

passing AS (
  SELECT
    rep, rank
  FROM pass_info
  GROUP BY ALL
),

counted AS (
  SELECT
    rep, train.position,
    count(DISTINCT rank) AS ranks
  FROM train
  INNER JOIN passing USING (rep, rank)
  GROUP BY ALL
),

everywhere AS (
  SELECT
    rep, position, ranks,
    max(ranks) OVER (PARTITION BY rep) AS most
  FROM counted
),

shared_step AS (
  SELECT
    rep, position,
    row_number() OVER (PARTITION BY rep ORDER BY position ASC) - 1 AS turn,
    count(*) OVER (PARTITION BY rep) AS turns
  FROM everywhere
  WHERE ranks = most
),

taken AS (
  SELECT
    rep, train.rank, train.step, train.position
  FROM train
  INNER JOIN shared_step USING (rep, position)
  INNER JOIN passing USING (rep, rank)
  WHERE
    shared_step.turns <= $steps
    OR floor(shared_step.turn * $steps / nullif(shared_step.turns, 0))
    > floor((shared_step.turn - 1) * $steps / nullif(shared_step.turns, 0))
),

happened AS (
  SELECT
    rep, taken.position, rank, op.start_ns,
    op.start_ns + op.dur_ns AS end_ns,
    '' AS track,
    pass_info.name,
    '' AS group_name,
    pass_info.phase AS kind,
    FALSE AS is_comm
  FROM op
  INNER JOIN taken USING (rep, rank, step)
  INNER JOIN pass_info USING (rep, rank, op_id)
  WHERE op.start_ns IS NOT NULL AND op.dur_ns IS NOT NULL
  UNION ALL
  SELECT
    rep, taken.position, rank, collective.start_ns,
    collective.start_ns + collective.dur_ns AS end_ns,
    coalesce(collective.track, '') AS track,
    lower(coalesce(collective.name, '')) AS name,
    coalesce(collective.group_name, '') AS group_name,
    coalesce(collective.kind, 'unknown') AS kind,
    TRUE AS is_comm
  FROM collective
  INNER JOIN taken USING (rep, rank, step)
  WHERE collective.start_ns IS NOT NULL AND collective.dur_ns IS NOT NULL
)

SELECT
  rep, happened.position, rank,
  row_number() OVER (
    PARTITION BY rep, happened.position, rank
    ORDER BY
      happened.start_ns ASC, happened.end_ns ASC, happened.is_comm ASC, happened.track ASC, happened.name ASC,
      happened.group_name ASC, happened.kind ASC
  ) AS place,
  happened.start_ns,
  happened.end_ns,
  happened.track,
  happened.name,
  happened.group_name,
  happened.kind,
  rank_peer.peers,
  happened.is_comm
FROM happened
INNER JOIN rank_peer USING (rep, rank)
ORDER BY rep, happened.position, rank, place

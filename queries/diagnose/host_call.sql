-- Functions of the user's Python that the training steps are spent in, outside of operators, in the steps' own thread.
--
-- A function has its own time and that of the library functions that it calls, one in the other; operators, and what
-- makes batches, have none. Addresses of objects are no part of a name.
--
-- Reads: op, op_info, train_step
-- Ranks: apart
-- Takes:
--   $least    double   of the steps, 0 to 1: functions that take less are left out
--   $library  varchar  pattern of what begins the name of a library's function
-- Gives, one row per (rep, rank, own_ns, name), in that order:
--   rep        bigint   repetition
--   rank       bigint   process rank
--   own_ns     bigint   ns    of the function
--   name       varchar  such as `file.py(12): function`
--   self_ns    bigint   ns    of that, in itself and in what is built into Python
--   inside     varchar  the library's function that takes most of it; null when none takes any
--   inside_ns  bigint   ns    of that; null without one
--   step_ns    bigint   ns    of the training steps
WITH RECURSIVE marked AS (
  SELECT DISTINCT rep, rank, op.track
  FROM op
  INNER JOIN op_info USING (rep, rank, op_id)
  INNER JOIN train_step USING (rep, rank, step)
  WHERE op_info.name = 'ProfilerStep*' AND coalesce(op.side, 'host') = 'host'
),

measured AS (
  SELECT
    rep, rank,
    CAST(sum(dur_ns) AS BIGINT) AS step_ns
  FROM train_step
  GROUP BY ALL
),

called AS (
  SELECT
    rep, rank, op.exec_id, op.parent_id,
    regexp_replace(op_info.name, ' at 0x[0-9a-fA-F]+', '') AS name,
    op_info.category = 'python_function' AND NOT regexp_matches(op_info.name, $library) AS is_own,
    CASE
      WHEN op_info.category = 'python_function' AND op_info.phase <> 'data' AND train_step.step IS NOT NULL
        THEN greatest(op.self_ns, 0)
    END AS self_ns
  FROM op
  INNER JOIN op_info USING (rep, rank, op_id)
  INNER JOIN marked USING (rep, rank, track)
  LEFT JOIN train_step USING (rep, rank, step)
),

-- Deeper than any real chain ends a cycle in damaged data.
owned AS (
  SELECT
    called.rep, called.rank, called.exec_id, called.name, called.self_ns,
    CASE WHEN called.is_own THEN called.name END AS owner,
    1 AS depth
  FROM called
  LEFT JOIN called AS caller
    ON called.rep = caller.rep AND called.rank = caller.rank AND called.parent_id = caller.exec_id
  WHERE caller.exec_id IS NULL
  UNION ALL
  SELECT
    called.rep, called.rank, called.exec_id, called.name, called.self_ns,
    CASE WHEN called.is_own THEN called.name ELSE owned.owner END AS owner,
    owned.depth + 1 AS depth
  FROM owned
  INNER JOIN called ON owned.rep = called.rep AND owned.rank = called.rank AND owned.exec_id = called.parent_id
  WHERE owned.depth < 1000
),

by_function AS (
  SELECT
    rep, rank, owner, name,
    CAST(sum(self_ns) AS BIGINT) AS self_ns
  FROM owned
  WHERE owner IS NOT NULL AND self_ns > 0
  GROUP BY ALL
),

ranked AS (
  SELECT
    *,
    CAST(sum(self_ns) OVER (PARTITION BY rep, rank, owner) AS BIGINT) AS own_ns,
    CAST(sum(CASE WHEN name = owner OR starts_with(name, '<built-in') THEN self_ns ELSE 0 END) OVER (
      PARTITION BY rep, rank, owner
    ) AS BIGINT) AS itself_ns,
    row_number() OVER (PARTITION BY rep, rank, owner ORDER BY name = owner ASC, self_ns DESC, name ASC) AS position
  FROM by_function
)

SELECT
  rep, rank, ranked.own_ns,
  ranked.owner AS name,
  ranked.itself_ns AS self_ns,
  CASE WHEN ranked.name <> ranked.owner THEN ranked.name END AS inside,
  CASE WHEN ranked.name <> ranked.owner THEN ranked.self_ns END AS inside_ns,
  measured.step_ns
FROM ranked
INNER JOIN measured USING (rep, rank)
WHERE ranked.position = 1 AND ranked.own_ns >= $least * measured.step_ns
ORDER BY rep, rank, ranked.own_ns, name

-- Functions that the thread that trains was seen in, from the first training step to the end of the last one.
--
-- Looks inside op windows are left out: steps are slower there. A function has the time of the looks that have it on
-- the stack, once each. The time of a fetch of a batch is the data pipeline's, and that of a checkpoint and of an
-- evaluation is told as a whole: neither is a function's.
--
-- Reads: op?, op_info?, stack, stack_sample, train_step
-- Ranks: apart
-- Takes:
--   $least     double   of the loop, 0 to 1: functions that take less are left out
--   $training  varchar  pattern of frames that train: gradients, updates, compiled steps, batches
--   $network   varchar  pattern of frames below which functions are the network's
--   $waits     varchar  pattern of frames that wait for the network
--   $library   varchar  pattern of what begins the frame of a library's function
-- Gives, one row per (rep, rank, total_ns, depth, name), in that order:
--   rep          bigint   repetition
--   rank         bigint   process rank
--   total_ns     bigint   ns    with the function on the stack
--   depth        bigint   its least distance from the outermost frame
--   name         varchar  file and function, such as `train.py: log`
--   frame        varchar  its line that takes most, such as `train.py(9): log`
--   caller       varchar  the frame that calls it most; null for the outermost one
--   is_library   boolean  a library's, or the framework's
--   self_ns      bigint   ns    in itself, and in what is written in C
--   frame_ns     bigint   ns    of that, at the line that takes most of it; null when it takes none
--   wait_ns      bigint   ns    in calls that wait for the network
--   launch_ns    bigint   ns    in Python of the framework that does not wait
--   training_ns  bigint   ns    with a frame that trains below it
--   network_ns   bigint   ns    as part of the network
--   owned_ns     bigint   ns    in Python, as the innermost function that is no library's; no waiting
--   inside       varchar  the function below it that takes most, with what a library calls for it; null without one
--   inside_ns    bigint   ns    of that; null without one
--   loop_ns      bigint   ns    all looks
--   looks        bigint   looks that have it
--   op_ns        bigint   ns    of operators that leave no frame, launched in it or below; null when not known
--   frame_op_ns  bigint   ns    of those, launched at its line that takes most, or below that; null when not known
WITH RECURSIVE bound AS (
  SELECT
    rep, rank,
    min(start_ns) AS from_ns,
    max(end_ns) AS to_ns
  FROM train_step
  GROUP BY ALL
),

-- Steps that begin at the same time are one here, so that a look belongs to one.
begun AS (
  SELECT
    rep, rank, start_ns,
    max(end_ns) AS end_ns,
    bool_or(timed) AS timed
  FROM train_step
  GROUP BY ALL
),

placed AS (
  SELECT
    rep, rank, stack_sample.stack_id, stack_sample.dur_ns, stack_sample.part,
    coalesce(begun.timed OR stack_sample.t_ns >= begun.end_ns, TRUE) AS counts
  FROM stack_sample
  INNER JOIN bound USING (rep, rank)
  ASOF LEFT JOIN begun
    ON
      stack_sample.rep = begun.rep AND stack_sample.rank = begun.rank
      AND stack_sample.t_ns >= begun.start_ns
  WHERE stack_sample.t_ns BETWEEN bound.from_ns AND bound.to_ns
),

seen AS (
  SELECT
    rep, rank, stack_id,
    CAST(sum(dur_ns) AS BIGINT) AS dur_ns,
    count(*) AS looks
  FROM placed
  WHERE counts AND part IS NULL
  GROUP BY ALL
),

whole AS (
  SELECT
    rep, rank,
    CAST(sum(dur_ns) AS BIGINT) AS loop_ns
  FROM placed
  WHERE counts
  GROUP BY ALL
),

-- The frames of each stack that was seen, from the innermost one (height 0) outwards.
walk AS (
  SELECT
    rep, rank,
    seen.stack_id AS leaf_id,
    stack.parent_id, stack.frame,
    0 AS height
  FROM seen
  INNER JOIN stack USING (rep, rank, stack_id)
  UNION ALL
  SELECT
    walk.rep, walk.rank, walk.leaf_id, stack.parent_id, stack.frame,
    walk.height + 1 AS height
  FROM walk
  INNER JOIN stack ON walk.rep = stack.rep AND walk.rank = stack.rank AND walk.parent_id = stack.stack_id
  WHERE walk.height < 1000
),

judged AS (
  SELECT
    *,
    regexp_replace(frame, '\(\d+\): ', ': ') AS name,
    max(height) OVER (PARTITION BY rep, rank, leaf_id) - height AS depth,
    lead(frame) OVER (PARTITION BY rep, rank, leaf_id ORDER BY height ASC) AS caller,
    frame LIKE 'torch/%' AS is_torch,
    regexp_matches(frame, '^(mindspore|torch)/') AS is_framework,
    is_framework OR regexp_matches(frame, $library) AS is_library
  FROM walk
),

about AS (
  SELECT
    rep, rank, leaf_id,
    min(CASE WHEN regexp_matches(frame, $training) THEN height END) AS training_height,
    max(CASE WHEN regexp_matches(frame, $network) THEN height END) AS network_height,
    bool_or(height = 0 AND is_framework) AS in_framework,
    bool_or(regexp_matches(frame, '^(mindspore/dataset|torch/utils/data)/.*\.__next__$')) AS fetches,
    bool_or(regexp_matches(frame, $waits)) AS waits,
    min(CASE WHEN NOT is_library THEN height END) AS own_height,
    -- The innermost function that a user may know: none of a library's own use.
    coalesce(
      arg_min(name, height) FILTER (WHERE NOT is_library OR regexp_matches(name, ': ([^.]+\.)*(__|[^_.][^.]*$)')),
      any_value(CASE WHEN height = 0 THEN name END)
    ) AS leaf_name
  FROM judged
  GROUP BY ALL
),

-- PyTorch launches operators from C, where MindSpore does from Python of its own.
hiding AS (
  SELECT
    rep, rank,
    bool_or(is_torch) AS hides_ops
  FROM judged
  GROUP BY ALL
),

launched AS (
  SELECT
    rep, rank, op_info.stack_id,
    sum(coalesce(op.self_ns, op.dur_ns)) AS own_ns
  FROM op
  INNER JOIN train_step USING (rep, rank, step)
  INNER JOIN op_info USING (rep, rank, op_id)
  WHERE op_info.stack_id IS NOT NULL
  GROUP BY ALL
),

stepped AS (
  SELECT
    rep, rank,
    sum(train_step.end_ns - train_step.start_ns) AS step_ns
  FROM train_step
  SEMI JOIN op USING (rep, rank, step)
  SEMI JOIN launched USING (rep, rank)
  GROUP BY ALL
),

launching AS (
  SELECT
    rep, rank, launched.stack_id AS leaf_id, stack.parent_id, launched.own_ns, stack.frame,
    0 AS height
  FROM launched
  INNER JOIN stack USING (rep, rank, stack_id)
  UNION ALL
  SELECT
    launching.rep, launching.rank, launching.leaf_id, stack.parent_id, launching.own_ns, stack.frame,
    launching.height + 1 AS height
  FROM launching
  INNER JOIN stack
    ON launching.rep = stack.rep AND launching.rank = stack.rank AND launching.parent_id = stack.stack_id
  WHERE launching.height < 1000
),

by_function AS (
  SELECT
    rep, rank, name,
    sum(own_ns) AS own_ns
  FROM (
    SELECT DISTINCT
      rep, rank, leaf_id, own_ns,
      regexp_replace(frame, '\(\d+\): ', ': ') AS name
    FROM launching
  ) AS once
  GROUP BY ALL
),

by_line AS (
  SELECT
    rep, rank, frame,
    sum(own_ns) AS own_ns
  FROM (SELECT DISTINCT rep, rank, leaf_id, frame, own_ns FROM launching) AS once
  GROUP BY ALL
),

-- Each function once in a stack, at its innermost call.
met AS (
  SELECT
    rep, rank, judged.leaf_id, judged.name, judged.frame, judged.caller, judged.is_library, judged.height, judged.depth,
    seen.dur_ns, seen.looks, about.leaf_name,
    judged.height = 0 AS is_leaf,
    about.waits, about.in_framework,
    coalesce(judged.height > about.training_height, FALSE) AS trains,
    coalesce(judged.height < about.network_height, FALSE) AS in_network,
    coalesce(judged.height = about.own_height AND NOT (about.in_framework OR about.waits), FALSE) AS owns
  FROM judged
  INNER JOIN about USING (rep, rank, leaf_id)
  INNER JOIN seen ON judged.rep = seen.rep AND judged.rank = seen.rank AND judged.leaf_id = seen.stack_id
  WHERE NOT about.fetches
  QUALIFY row_number() OVER (PARTITION BY rep, rank, judged.leaf_id, judged.name ORDER BY judged.height ASC) = 1
),

by_frame AS (
  SELECT
    rep, rank, name, frame,
    CAST(sum(CASE WHEN is_leaf THEN dur_ns END) AS BIGINT) AS frame_ns
  FROM met
  GROUP BY rep, rank, name, frame
  QUALIFY row_number() OVER (
    PARTITION BY rep, rank, name ORDER BY frame_ns DESC NULLS LAST, sum(dur_ns) DESC, frame ASC
  ) = 1
),

by_caller AS (
  SELECT
    rep, rank, name, caller
  FROM met
  GROUP BY rep, rank, name, caller
  QUALIFY row_number() OVER (PARTITION BY rep, rank, name ORDER BY sum(dur_ns) DESC, caller ASC NULLS LAST) = 1
),

by_inside AS (
  SELECT
    rep, rank, name,
    leaf_name AS inside,
    CAST(sum(dur_ns) AS BIGINT) AS inside_ns
  FROM met
  WHERE NOT is_leaf AND leaf_name <> name
  GROUP BY rep, rank, name, leaf_name
  QUALIFY row_number() OVER (PARTITION BY rep, rank, name ORDER BY inside_ns DESC, inside ASC) = 1
),

summed AS (
  SELECT
    rep, rank, name,
    CAST(sum(dur_ns) AS BIGINT) AS total_ns,
    CAST(min(depth) AS BIGINT) AS depth,
    any_value(is_library) AS is_library,
    CAST(sum(CASE WHEN is_leaf THEN dur_ns ELSE 0 END) AS BIGINT) AS self_ns,
    CAST(sum(CASE WHEN waits THEN dur_ns ELSE 0 END) AS BIGINT) AS wait_ns,
    CAST(sum(CASE WHEN in_framework AND NOT waits THEN dur_ns ELSE 0 END) AS BIGINT) AS launch_ns,
    CAST(sum(CASE WHEN trains THEN dur_ns ELSE 0 END) AS BIGINT) AS training_ns,
    CAST(sum(CASE WHEN in_network THEN dur_ns ELSE 0 END) AS BIGINT) AS network_ns,
    CAST(sum(CASE WHEN owns THEN dur_ns ELSE 0 END) AS BIGINT) AS owned_ns,
    CAST(sum(looks) AS BIGINT) AS looks
  FROM met
  GROUP BY ALL
)

SELECT
  rep, rank, summed.total_ns, summed.depth, name, by_frame.frame, by_caller.caller, summed.is_library, summed.self_ns,
  by_frame.frame_ns, summed.wait_ns, summed.launch_ns, summed.training_ns, summed.network_ns, summed.owned_ns,
  by_inside.inside, by_inside.inside_ns, whole.loop_ns, summed.looks,
  CASE
    WHEN NOT hiding.hides_ops THEN 0
    ELSE CAST(floor(coalesce(by_function.own_ns, 0) / nullif(stepped.step_ns, 0) * whole.loop_ns) AS BIGINT)
  END AS op_ns,
  CASE
    WHEN NOT hiding.hides_ops THEN 0
    ELSE CAST(floor(coalesce(by_line.own_ns, 0) / nullif(stepped.step_ns, 0) * whole.loop_ns) AS BIGINT)
  END AS frame_op_ns
FROM summed
INNER JOIN whole USING (rep, rank)
INNER JOIN hiding USING (rep, rank)
INNER JOIN by_frame USING (rep, rank, name)
INNER JOIN by_caller USING (rep, rank, name)
LEFT JOIN by_inside USING (rep, rank, name)
LEFT JOIN stepped USING (rep, rank)
LEFT JOIN by_function USING (rep, rank, name)
LEFT JOIN by_line ON summed.rep = by_line.rep AND summed.rank = by_line.rank AND by_frame.frame = by_line.frame
WHERE summed.total_ns >= $least * whole.loop_ns
ORDER BY rep, rank, summed.total_ns, summed.depth, name

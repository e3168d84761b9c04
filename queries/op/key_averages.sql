-- Time and memory of operators, summed by a key of the user's choice over the whole run.
--
-- As PyTorch's `key_averages()`: total times nest, so they add up to more than the run; own times add up to it. A row
-- of a device (a kernel) has device time alone. Operators carry the device time of what they launched, too, so sum up
-- device_self_ns over the rows with on_device, or over the others. All that was recorded counts, not steps alone. Time
-- in Python functions is never own time of the operator that called them, also where they have no rows.
--
-- Reads: op, op_info?, stack?
-- Takes:
--   $group_by          varchar  name | shape | stack | type | scope | phase
--   $stack_depth       integer  innermost frames that count when $group_by is stack
--   $python_functions  boolean  calls of Python functions have rows, too
-- Gives, one row per (rep, rank, key, category, on_device, in_shapes, stack), in that order:
--   rep                       bigint   repetition
--   rank                      bigint   process rank
--   key                       varchar  name, type, scope or phase
--   category                  varchar  kind of event in the source; null when grouped by more than the operator
--   on_device                 boolean  ran on a device
--   in_shapes                 varchar  input shapes, when $group_by is shape; [] for none
--   stack                     varchar  frames, innermost first, one per line, when $group_by is stack; empty for none
--   count                     bigint   executions
--   self_ns                   bigint   ns     host time without callees
--   total_ns                  bigint   ns     host time
--   device_self_ns            bigint   ns     device time of what it launched itself; null when not recorded
--   device_total_ns           bigint   ns     device time, callees included; null when not recorded
--   self_memory_bytes         bigint   bytes  allocated less freed, without callees; null when not recorded
--   memory_bytes              bigint   bytes  allocated less freed, callees included; null when not recorded
--   self_device_memory_bytes  bigint   bytes  as self_memory_bytes, on devices
--   device_memory_bytes       bigint   bytes  as memory_bytes, on devices
--   computation               double   operations of the executions of which they are known; null when of none
--   computation_count         bigint   how many these are
WITH RECURSIVE executed AS (
  SELECT
    rep, rank, op_id,
    count(*) AS executions,
    sum(self_ns) AS self_ns,
    sum(dur_ns) AS total_ns,
    sum(device_self_ns) AS device_self_ns,
    sum(device_total_ns) AS device_total_ns,
    sum(self_memory_bytes) AS self_memory_bytes,
    sum(memory_bytes) AS memory_bytes,
    sum(self_device_memory_bytes) AS self_device_memory_bytes,
    sum(device_memory_bytes) AS device_memory_bytes,
    CASE WHEN side = 'device' THEN 1 ELSE 0 END AS on_device
  FROM op
  GROUP BY ALL
),

-- The innermost frames of each source location in use, one more caller in each round.
frames AS (
  SELECT
    rep, rank, stack_id, parent_id,
    frame AS text,
    1 AS depth
  FROM stack
  WHERE $group_by = 'stack' AND $stack_depth > 0
  UNION ALL
  SELECT
    frames.rep, frames.rank, frames.stack_id, stack.parent_id,
    frames.text || '
' || stack.frame AS text,
    frames.depth + 1 AS depth
  FROM frames
  INNER JOIN stack
    ON frames.rep = stack.rep AND frames.rank = stack.rank AND frames.parent_id = stack.stack_id
  WHERE frames.depth < $stack_depth
),

location AS (
  SELECT
    rep, rank, stack_id, text
  FROM frames
  WHERE depth = $stack_depth OR parent_id IS NULL
),

keyed AS (
  SELECT
    executed.*,
    CASE
      WHEN $group_by = 'type' THEN coalesce(op_info.type, '')
      WHEN $group_by = 'scope' THEN coalesce(op_info.scope, '')
      WHEN $group_by = 'phase' THEN coalesce(op_info.phase, '')
      ELSE coalesce(op_info.name, '')
    END AS key,
    CASE WHEN $group_by IN ('name', 'shape', 'stack') THEN op_info.category END AS category,
    executed.executions * CAST(op_info.flops AS DOUBLE) AS computation,
    CASE WHEN $group_by = 'shape' THEN coalesce(op_info.in_shapes, '[]') END AS in_shapes,
    CASE WHEN $group_by = 'stack' THEN coalesce(location.text, '') END AS stack
  FROM executed
  LEFT JOIN op_info USING (rep, rank, op_id)
  LEFT JOIN location
    ON op_info.rep = location.rep AND op_info.rank = location.rank AND op_info.stack_id = location.stack_id
  WHERE $python_functions OR coalesce(op_info.category, '') <> 'python_function'
)

SELECT
  rep, rank, key, category,
  on_device = 1 AS on_device,
  in_shapes, stack,
  CAST(sum(executions) AS BIGINT) AS count,
  CAST(sum(CASE WHEN on_device = 1 THEN 0 ELSE self_ns END) AS BIGINT) AS self_ns,
  CAST(sum(CASE WHEN on_device = 1 THEN 0 ELSE total_ns END) AS BIGINT) AS total_ns,
  CAST(sum(device_self_ns) AS BIGINT) AS device_self_ns,
  CAST(sum(device_total_ns) AS BIGINT) AS device_total_ns,
  CAST(sum(self_memory_bytes) AS BIGINT) AS self_memory_bytes,
  CAST(sum(memory_bytes) AS BIGINT) AS memory_bytes,
  CAST(sum(self_device_memory_bytes) AS BIGINT) AS self_device_memory_bytes,
  CAST(sum(device_memory_bytes) AS BIGINT) AS device_memory_bytes,
  sum(computation) AS computation,
  CAST(coalesce(sum(executions) FILTER (WHERE computation IS NOT NULL), 0) AS BIGINT) AS computation_count
FROM keyed
GROUP BY ALL
ORDER BY rep, rank, key, category, on_device, in_shapes, stack

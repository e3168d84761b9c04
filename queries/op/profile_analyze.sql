-- Operators of one side (device or host), one by one or by type: their time, and what they computed and moved in it.
--
-- An operator's time on a side is the longest over its devices or threads; executions on one of them add up. Shares
-- refer to the time from start to end of all operators of that side, whatever is chosen. Counts training steps; warm-up
-- steps when no others were recorded, and executions outside of known steps when there are none of these either.
--
-- Reads: chosen?, op, op_info?, step?
-- Takes:
--   $side       varchar  device | host
--   $key        varchar  total (start to end) | wait (until the kernel starts) | exec (from then on)
--   $every      boolean  all operators; else only those in `chosen`
--   $bounded    boolean  only times within $least_ns and $most_ns
--   $least_ns   double   shortest time, before anything is added up
--   $most_ns    double   longest time, before anything is added up
--   $by         varchar  op (no adding up) | type | all
--   $aggregate  varchar  sum | mean | max | min, of times and of amounts each by itself
--   $order_by   varchar  a column of numbers, or place (that in `chosen`); anything else: order of execution
--   $ascending  boolean  smallest first; unknown values are last either way
--   $top        bigint   rows of each rank; 0 for all, -n for all but the last n
-- Gives, one row per (rep, rank, position), in that order:
--   rep                bigint   repetition
--   rank               bigint   process rank
--   position           bigint   from 1, in the wanted order; of equals the first executed
--   op_id              bigint   the operator; null when added up
--   opr_id             varchar  its id in the source; null when added up
--   name               varchar  its name; null when added up
--   type               varchar  its type; all when all types are added up
--   count              bigint   executions
--   self_ns            double   ns      its time by $key, without operators it called
--   total_ns           double   ns      start to end, without operators it called
--   wait_ns            double   ns      start to the kernel's start; null when there was none
--   exec_ns            double   ns      kernel's start to end; null when there was none
--   share              double   0..1    self_ns / side_ns
--   cumulative_ns      double   ns      self_ns of this row and those above it
--   computation        double   operations of the executions of which they are known; null when of none
--   flops              double   operations per second: computation / self_ns
--   memory             double   bytes that all its executions read and wrote; null when not known
--   bandwidth          double   bytes per second: memory / self_ns
--   in_shapes          varchar  input shapes as text; null when added up
--   out_shapes         varchar  output shapes as text; null when added up
--   in_strides         varchar  strides of inputs that are not contiguous; null when added up
--   device             varchar  where it ran; null when added up
--   side_ns            double   ns      start to end of all operators of the side
--   all_rows           bigint   rows of this rank, also those that $top leaves out
--   computation_count  bigint   executions of which the operations are known
WITH stepped AS (
  SELECT
    rep, rank, op.op_id, op.track,
    coalesce(op.exact_dur_ns, op.self_ns) AS total_ns,
    coalesce(op.exact_wait_ns, op.wait_ns) AS wait_ns,
    CASE step.kind WHEN 'train' THEN 1 WHEN 'warmup' THEN 2 ELSE 3 END AS preference
  FROM op
  LEFT JOIN step USING (rep, rank, step)
  WHERE coalesce(op.side, 'device') = $side AND (step.kind IS NULL OR step.kind IN ('train', 'warmup'))
),

best AS (
  SELECT
    rep, rank,
    min(preference) AS preference
  FROM stepped
  GROUP BY ALL
),

located AS (
  SELECT
    rep, rank, stepped.op_id,
    count(*) AS executions,
    sum(stepped.total_ns) AS total_ns,
    sum(stepped.wait_ns) AS wait_ns,
    sum(stepped.total_ns - stepped.wait_ns) AS exec_ns
  FROM stepped
  INNER JOIN best USING (rep, rank, preference)
  GROUP BY rep, rank, stepped.op_id, stepped.track
),

longest AS (
  SELECT
    rep, rank, op_id,
    max(executions) AS executions,
    CAST(max(total_ns) AS DOUBLE) AS total_ns,
    CAST(max(wait_ns) AS DOUBLE) AS wait_ns,
    CAST(max(exec_ns) AS DOUBLE) AS exec_ns
  FROM located
  GROUP BY ALL
),

whole AS (
  SELECT
    rep, rank,
    sum(total_ns) AS side_ns
  FROM longest
  GROUP BY ALL
),

timed AS (
  SELECT
    *,
    CASE $key WHEN 'wait' THEN wait_ns WHEN 'exec' THEN exec_ns ELSE total_ns END AS self_ns
  FROM longest
),

described AS (
  SELECT
    rep, rank, op_id, timed.executions, timed.total_ns, timed.wait_ns, timed.exec_ns, timed.self_ns,
    CAST(op_info.flops AS DOUBLE) * timed.executions AS computation,
    CAST(op_info.bytes AS DOUBLE) * timed.executions AS memory,
    chosen.place,
    CASE WHEN $by = 'op' THEN op_id END AS member_op,
    CASE $by WHEN 'type' THEN op_info.type WHEN 'all' THEN 'all' END AS member_type
  FROM timed
  LEFT JOIN op_info USING (rep, rank, op_id)
  LEFT JOIN chosen USING (rep, rank, op_id)
  WHERE
    ($every OR chosen.op_id IS NOT NULL)
    AND (NOT $bounded OR (timed.self_ns >= $least_ns AND timed.self_ns <= $most_ns))
),

added AS (
  SELECT
    rep, rank,
    member_op AS op_id,
    member_type,
    min(op_id) AS first_op,
    min(place) AS place,
    CAST(sum(executions) AS BIGINT) AS executions,
    CAST(coalesce(sum(executions) FILTER (WHERE computation IS NOT NULL), 0) AS BIGINT) AS computation_count,
    CASE $aggregate
      WHEN 'max' THEN max(self_ns) WHEN 'min' THEN min(self_ns) WHEN 'mean' THEN avg(self_ns) ELSE sum(self_ns)
    END AS self_ns,
    CASE $aggregate
      WHEN 'max' THEN max(total_ns) WHEN 'min' THEN min(total_ns) WHEN 'mean' THEN avg(total_ns) ELSE sum(total_ns)
    END AS total_ns,
    CASE $aggregate
      WHEN 'max' THEN max(wait_ns) WHEN 'min' THEN min(wait_ns) WHEN 'mean' THEN avg(wait_ns) ELSE sum(wait_ns)
    END AS wait_ns,
    CASE $aggregate
      WHEN 'max' THEN max(exec_ns) WHEN 'min' THEN min(exec_ns) WHEN 'mean' THEN avg(exec_ns) ELSE sum(exec_ns)
    END AS exec_ns,
    CASE $aggregate
      WHEN 'max' THEN max(computation) WHEN 'min' THEN min(computation)
      WHEN 'mean' THEN sum(computation) / nullif(count(*), 0) ELSE sum(computation)
    END AS computation,
    CASE $aggregate
      WHEN 'max' THEN max(memory) WHEN 'min' THEN min(memory)
      WHEN 'mean' THEN sum(memory) / nullif(count(*), 0) ELSE sum(memory)
    END AS memory
  FROM described
  GROUP BY ALL
),

rated AS (
  SELECT
    *,
    computation * 1e9 / nullif(self_ns, 0) AS flops,
    memory * 1e9 / nullif(self_ns, 0) AS bandwidth
  FROM added
),

keyed AS (
  SELECT
    *,
    CASE $order_by
      WHEN 'self_ns' THEN self_ns WHEN 'total_ns' THEN total_ns WHEN 'wait_ns' THEN wait_ns
      WHEN 'exec_ns' THEN exec_ns WHEN 'computation' THEN computation WHEN 'flops' THEN flops
      WHEN 'memory' THEN memory WHEN 'bandwidth' THEN bandwidth WHEN 'count' THEN CAST(executions AS DOUBLE)
      WHEN 'op_id' THEN CAST(first_op AS DOUBLE) WHEN 'place' THEN CAST(place AS DOUBLE)
    END AS sort_key
  FROM rated
),

ordered AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY rep, rank) AS all_rows,
    row_number() OVER (
      PARTITION BY rep, rank
      ORDER BY
        CASE WHEN $ascending THEN sort_key END ASC NULLS LAST,
        CASE WHEN NOT $ascending THEN sort_key END DESC NULLS LAST,
        first_op ASC
    ) AS position
  FROM keyed
),

shown AS (
  SELECT *
  FROM ordered
  WHERE position <= CASE WHEN $top > 0 THEN $top ELSE all_rows + $top END
)

SELECT
  rep, rank, shown.position, shown.op_id,
  op_info.source_id AS opr_id,
  op_info.name,
  coalesce(shown.member_type, op_info.type) AS type,
  shown.executions AS count,
  shown.self_ns, shown.total_ns, shown.wait_ns, shown.exec_ns,
  shown.self_ns / nullif(whole.side_ns, 0) AS share,
  sum(shown.self_ns) OVER (
    PARTITION BY rep, rank ORDER BY shown.position ROWS UNBOUNDED PRECEDING
  ) AS cumulative_ns,
  shown.computation, shown.flops, shown.memory, shown.bandwidth, op_info.in_shapes, op_info.out_shapes,
  op_info.in_strides, op_info.device, whole.side_ns, shown.all_rows, shown.computation_count
FROM shown
INNER JOIN whole USING (rep, rank)
LEFT JOIN op_info USING (rep, rank, op_id)
ORDER BY rep, rank, shown.position

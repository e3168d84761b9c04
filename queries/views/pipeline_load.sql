-- The stages of the training pipelines, from the sources to the training loop, with all that decides which one limits.
--
-- rate is the capacity: batches per second that the stage could make if the others kept up, workers / work per batch.
-- utilisation = the rate of the loop / rate: 1 for a stage that limits. A Python source with one worker is as fast as
-- its rows come; with two or more a master collects them and sleeps 100 ms whenever the next row is not there, and a
-- worker prepares 16 rows meanwhile with threads, max(2, min(queue, 4 * queue // workers)) with processes. That bounds
-- the time between two rows (law_row_ns), and with threads the rate; MindSpore's timing lines of such a source are of
-- its output. Operators without a queue and without a time are left out: they work inside their consumer.
--
-- A stage made in the window what was taken from it there, less what its queues held for each iterator. Work that was
-- measured longer than that leaves room for is cut to it, and overrun says how many times too long it was: what some
-- batches took, such as those that MindSpore's timing lines are of, is not what the others took.
--
-- Stages that are timed inside their consumer (chained) take turns, in the loop itself or in each worker process. One
-- that takes most of the time of the turn is as busy as the whole: always, when the loop itself makes its batches.
--
-- Reads: load_cpu?, load_fill?, load_lock?, load_op, load_service?, pipeline_pace?, pipeline_window?
-- Kept: yes
-- Gives, one row per (rep, rank, pipeline_key, op_id):
--   rep              bigint   repetition
--   rank             bigint   process rank
--   pipeline_key     varchar  equal keys are the same pipeline again
--   op_id            bigint   operator; -1 is the training loop
--   op_type          varchar  such as MapOp; consumer is the training loop
--   name             varchar  what it does
--   workers          bigint   rows it works on at a time
--   capacity         bigint   size of its output queue
--   is_python        boolean  runs the user's Python; null when unknown
--   uses_processes   boolean  its Python runs in worker processes; null when unknown
--   iterated         boolean  a Python source whose rows are taken one after the other; null when unknown
--   wrapped          boolean  a Python source that hands on the rows of a MindSpore dataset; null when unknown
--   node             bigint   position in the user's dataset graph; null when unknown
--   site             varchar  file:line of the call that made it; null when unknown
--   code             varchar  file:line of its Python function or class; null when unknown
--   is_leaf          boolean  no operator produces for it
--   chained          boolean  takes turns with the other stages that are chained
--   below_concat     boolean  it works only part of the time
--   below_filter     boolean  not all of its rows arrive
--   source           varchar  of its times: log | hook | both; loop for the training loop; null without
--   timed_batches    bigint   batches that its times are from
--   rows_per_batch   double   rows it worked on for one batch
--   work_ns          double   ns    its workers' time for one batch; null when not measured
--   row_ns           double   ns    one row in one worker; null when not measured
--   law_row_ns       double   ns    shortest time between two rows that a source's master allows; null without one
--   rate             double   batches per second  its capacity; null when not measured
--   utilisation      double   the loop's rate / its capacity; null when not measured
--   busy             double   the part of the loop's time that its own work takes: less than its utilisation where it
--                             takes turns; null when not measured
--   overrun          double   times too long that its work was measured; null when it was not
--   cores            double   cores  that it used; null when not measured
--   python_cores     double   cores  computing in Python inside the process; 0 when it does not or is not measured
--   cpu_share        double   0..1  of a worker's time that was computing; null when not measured
--   call_cores       double   cores  that one row keeps busy in a worker process; null when not measured, or without
--   lock_share       double   0..1  of its workers' busy time, waiting for the interpreter's lock; null: not seen
--   work_cv          double   standard deviation / mean of the work of the batches; null when not measured
--   longest_batches  double   its usual longest row, in batches' work; null when not measured
--   longest_ns       double   ns    its usual longest row
--   max_row_ns       bigint   ns    its longest row; null when not measured
--   burst_share      double   0..1  intervals in which one row took far longer than the others; null when not measured
--   samples          bigint   queue samples
--   input_ratio      double   0..1  mean fill in front of it; null for a source
--   output_ratio     double   0..1  mean fill behind it; null without a queue
--   drop_ratio       double   -1..1  input - output, with input 1 for a source and output 0 for the loop
WITH lived AS (
  SELECT
    rep, rank, pipeline_key,
    count(*) AS iterators,
    max(to_ns) - min(from_ns) AS span_ns
  FROM pipeline_window
  WHERE role = 'train'
  GROUP BY ALL
),

joined AS (
  SELECT
    load_op.*,
    load_service.source,
    load_service.batches AS timed_batches,
    load_service.rows_per_batch, CASE
      WHEN load_op.op_id = -1 THEN 1.0e9 / nullif(pipeline_pace.consumer_rate, 0)
      ELSE load_service.work_ns
    END AS work_ns,
    load_service.hook_row_ns,
    load_service.hook_work_ns,
    load_service.hook_cpu_ns,
    load_service.log_work_ns,
    load_service.cpu_share AS hook_cpu_share,
    load_service.call_cores,
    load_service.work_cv,
    load_service.longest_batches,
    load_service.longest_ns,
    load_service.max_row_ns,
    load_service.burst_share,
    pipeline_pace.rate AS loop_rate,
    pipeline_pace.batches AS taken,
    lived.iterators, lived.span_ns,
    load_cpu.cores AS sampled_cores,
    load_lock.threads AS lock_threads,
    load_fill.samples,
    CASE WHEN load_op.is_leaf THEN 1.0e0 ELSE load_fill.input_ratio END AS intake_ratio,
    load_fill.input_ratio,
    load_fill.output_ratio
  FROM load_op
  LEFT JOIN pipeline_pace USING (rep, rank, pipeline_key)
  LEFT JOIN lived USING (rep, rank, pipeline_key)
  LEFT JOIN load_service USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN load_cpu USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN load_lock USING (rep, rank, pipeline_key, op_id)
  LEFT JOIN load_fill USING (rep, rank, pipeline_key, op_id)
  WHERE
    load_op.op_id = -1
    OR load_op.is_sink
    OR load_service.op_id IS NOT NULL
    OR load_fill.output_ratio IS NOT NULL
),

timed AS (
  SELECT
    *,
    CASE
      WHEN op_type <> 'GeneratorOp' THEN workers * 1.0e9 / nullif(work_ns, 0)
      WHEN workers = 1 THEN 1.0e9 / nullif(work_ns, 0)
      WHEN log_work_ns IS NOT NULL THEN 1.0e9 / nullif(log_work_ns, 0)
      WHEN coalesce(uses_processes, FALSE) THEN workers * 1.0e9 / nullif(work_ns, 0)
      ELSE
        least(workers * 1.0e9 / nullif(work_ns, 0), 160.0e0 * workers / nullif(rows_per_batch, 0))
    END AS timed_rate,
    -- Batches that the queues of one iterator hold at most; where no size is known, those of four of MindSpore's.
    sum(capacity / nullif(greatest(coalesce(rows_per_batch, 1.0e0), 1.0e0), 0)) OVER (
      PARTITION BY rep, rank, pipeline_key
    ) AS queued,
    CASE
      WHEN op_type <> 'GeneratorOp' OR workers < 2 THEN NULL
      WHEN coalesce(uses_processes, FALSE)
        THEN
          1.0e8 / nullif(
            workers
            * greatest(
              2.0e0, least(coalesce(capacity, 16), floor(4.0e0 * coalesce(capacity, 16) / nullif(workers, 0)))
            ),
            0
          )
      ELSE 1.0e8 / nullif(16.0e0 * workers, 0)
    END AS law_row_ns,
    greatest(sampled_cores, hook_cpu_ns * loop_rate / 1.0e9) AS cores,
    coalesce(inlined, FALSE) AND source = 'hook' AS chained
  FROM joined
),

rated AS (
  SELECT
    * REPLACE (
      work_ns * CASE WHEN least_rate > timed_rate THEN timed_rate / nullif(made_rate, 0) ELSE 1.0e0 END AS work_ns
    ),
    CASE WHEN least_rate > timed_rate THEN made_rate ELSE timed_rate END AS rate,
    CASE WHEN least_rate > timed_rate THEN made_rate / nullif(timed_rate, 0) END AS overrun
  FROM (
    SELECT
      *,
      taken * 1.0e9 / nullif(span_ns, 0) AS made_rate,
      CASE
        WHEN op_id = -1 OR chained OR below_concat THEN NULL
        ELSE (taken - coalesce(queued, 64.0e0) * iterators) * 1.0e9 / nullif(span_ns, 0)
      END AS least_rate
    FROM timed
  ) AS made
),

-- A stage that the loop runs itself, beside others in worker processes, is in no turn.
turned AS (
  SELECT
    *,
    chained AND coalesce(uses_processes, FALSE) AS in_workers,
    chained AND NOT bool_or(coalesce(uses_processes, FALSE)) OVER pipeline AS in_loop,
    sum(work_ns) FILTER (WHERE chained) OVER turn AS turn_ns,
    max(work_ns) FILTER (WHERE chained) OVER turn AS longest_turn_ns
  FROM rated
  WINDOW
    pipeline AS (PARTITION BY rep, rank, pipeline_key),
    turn AS (PARTITION BY rep, rank, pipeline_key, chained, uses_processes)
)

SELECT
  rep, rank, pipeline_key, op_id, op_type, name, workers, capacity, is_python, uses_processes, iterated, wrapped,
  node, site,
  code, is_leaf, chained, below_concat, below_filter,
  CASE WHEN op_id = -1 AND rate IS NOT NULL THEN 'loop' ELSE source END AS source,
  timed_batches, rows_per_batch, work_ns,
  coalesce(hook_row_ns, CASE WHEN workers = 1 OR op_type <> 'GeneratorOp' THEN work_ns / nullif(rows_per_batch, 0) END)
    AS row_ns,
  law_row_ns, rate,
  CASE
    WHEN in_loop THEN work_ns / nullif(longest_turn_ns, 0)
    WHEN in_workers THEN loop_rate / nullif(rate, 0) * turn_ns / nullif(longest_turn_ns, 0)
    ELSE loop_rate / nullif(rate, 0)
  END AS utilisation,
  CASE WHEN chained THEN least(loop_rate / nullif(rate, 0), utilisation) ELSE utilisation END AS busy,
  overrun,
  CASE WHEN NOT coalesce(in_loop, FALSE) THEN cores END AS cores,
  -- Whether a map of imported files is Python is not known: it may be.
  CASE
    WHEN coalesce(uses_processes, FALSE) OR NOT coalesce(is_python, TRUE) OR coalesce(in_loop, FALSE) THEN 0.0e0
    ELSE coalesce(cores, 0.0e0)
  END AS python_cores,
  CASE
    WHEN hook_work_ns >= 0.5e0 * work_ns THEN hook_cpu_share
    WHEN sampled_cores > loop_rate * work_ns / 1.0e9 THEN 1.0e0
    ELSE sampled_cores / nullif(loop_rate * work_ns / 1.0e9, 0)
  END AS cpu_share,
  CASE WHEN coalesce(uses_processes, FALSE) THEN call_cores END AS call_cores,
  CASE
    WHEN lock_threads IS NOT NULL AND rate IS NOT NULL
      THEN least(lock_threads / nullif(workers * least(loop_rate / nullif(rate, 0), 1.0e0), 0), 1.0e0)
  END AS lock_share,
  work_cv, longest_batches, longest_ns, max_row_ns, burst_share, samples, input_ratio, output_ratio,
  intake_ratio - CASE WHEN op_id = -1 THEN 0.0e0 ELSE output_ratio END AS drop_ratio
FROM turned

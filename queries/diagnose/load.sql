-- The stages of the training pipelines: all facts that the verdict, its evidence and the predictions are made from.
--
-- Where the CPU time of the job was accounted for, what the machine did is of the cores that the rank may use.
--
-- Reads: load_host?, load_restart?, load_room?, pipeline_load, pipeline_pace?
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep              bigint   repetition
--   rank             bigint   process rank
--   pipeline_key     varchar  equal keys are the same pipeline again
--   op_id            bigint   operator; -1 is the training loop
--   op_type          varchar  such as MapOp; consumer is the training loop
--   name             varchar  what it does; null when unknown
--   workers          bigint   rows it works on at a time
--   capacity         bigint   size of its output queue; null without one
--   is_python        boolean  runs the user's Python; null when unknown
--   uses_processes   boolean  its Python runs in worker processes; null when unknown
--   iterated         boolean  a Python source whose rows are taken one after the other; null when unknown
--   wrapped          boolean  a Python source that hands on the rows of a MindSpore dataset; null when unknown
--   node             bigint   position in the user's dataset graph; null when unknown
--   site             varchar  file:line of the call that made it; null when unknown
--   code             varchar  file:line of its Python function or class; null when unknown
--   chained          boolean  takes turns with the other stages that are chained, in the loop itself or in its workers
--   below_concat     boolean  it works only part of the time
--   source           varchar  of its times: log | hook | both; loop for the training loop; null without
--   timed_batches    bigint   batches that its times are from; null without
--   rows_per_batch   double   rows it worked on for one batch; null when not measured
--   work_ns          double   ns    its workers' time for one batch; null when not measured
--   row_ns           double   ns    one row in one worker; null when not measured
--   rate             double   batches per second  its capacity; null when not measured
--   utilisation      double   the loop's rate / its capacity; null when not measured
--   busy             double   the part of the loop's time that its own work takes; null when not measured
--   overrun          double   times too long that its work was measured; null when it was not
--   law_row_ns       double   ns    shortest row time that a source's master allows; null without one
--   cores            double   cores  that it used; null when not measured
--   python_cores     double   cores  computing in Python inside the process
--   cpu_share        double   0..1  of a worker's time that was computing; null when not measured
--   call_cores       double   cores  that one row keeps busy in a worker process; null when not measured, or without
--   lock_share       double   0..1  of its workers' busy time, waiting for the interpreter's lock; null: not seen
--   work_cv          double   standard deviation / mean of the work of the batches; null when not measured
--   longest_batches  double   its usual longest row, in batches' work; null when not measured
--   longest_ns       double   ns    its usual longest row; null when not measured
--   max_row_ns       bigint   ns    its longest row; null when not measured
--   burst_share      double   0..1  intervals in which one row took far longer than the others; null when not measured
--   samples          bigint   queue samples; null without any
--   input_ratio      double   0..1  mean fill in front of it; null for a source
--   output_ratio     double   0..1  mean fill behind it; null without a queue
--   drop_ratio       double   -1..1  input - output, with input 1 for a source and output 0 for the loop; null when not
--                             sampled
--   side             varchar  whose waiting wait_share is: iterator | host_queue | data_queue; null without batches
--   batches          bigint   batches in the window; null without any
--   wait_share       double   0..1  of the loop's time, spent waiting for batches; null without any
--   loop_rate        double   batches per second  of the loop; null without batches
--   consumer_rate    double   batches per second  what the loop could take; null when not known
--   idle_share       double   0..1  of the cores that it may use, or of the machine's; null when not measured
--   process_cores    double   cores  that the rank's processes used; null when not measured
--   room_cores       double   cores  that it may use; null when not measured
--   job_cores        double   cores  that the whole job used, all ranks of this machine; null when not measured
--   delay_share      double   0..1  of the time that the loop's threads wanted a core, without one; null when not known
--   gil_share        double   0..1  of the time Python code held the interpreter's lock; null when not measured
--   restart_ns       double   ns    that an epoch takes to start a loader's workers and to end them; null: not known
--   epoch_batches    double   batches of each epoch of such a loader; null: not known
SELECT
  rep, rank, pipeline_key, pipeline_load.op_id, pipeline_load.op_type, pipeline_load.name, pipeline_load.workers,
  pipeline_load.capacity, pipeline_load.is_python, pipeline_load.uses_processes, pipeline_load.iterated,
  pipeline_load.wrapped,
  pipeline_load.node, pipeline_load.site, pipeline_load.code, pipeline_load.chained, pipeline_load.below_concat,
  pipeline_load.source,
  pipeline_load.timed_batches,
  pipeline_load.rows_per_batch, pipeline_load.work_ns, pipeline_load.row_ns, pipeline_load.rate,
  pipeline_load.utilisation, pipeline_load.busy, pipeline_load.overrun, pipeline_load.law_row_ns,
  pipeline_load.cores, pipeline_load.python_cores,
  pipeline_load.cpu_share, pipeline_load.call_cores, pipeline_load.lock_share,
  pipeline_load.work_cv, pipeline_load.longest_batches, pipeline_load.longest_ns,
  pipeline_load.max_row_ns, pipeline_load.burst_share, pipeline_load.samples, pipeline_load.input_ratio,
  pipeline_load.output_ratio, pipeline_load.drop_ratio, pipeline_pace.side, pipeline_pace.batches,
  pipeline_pace.wait_share,
  pipeline_pace.rate AS loop_rate,
  pipeline_pace.consumer_rate,
  coalesce(load_room.idle_share, load_host.idle_share) AS idle_share,
  coalesce(load_room.rank_cores, load_host.process_cores) AS process_cores,
  load_room.cores AS room_cores,
  load_room.job_cores, load_room.delay_share, load_host.gil_share,
  load_restart.restart_ns, load_restart.epoch_batches
FROM pipeline_load
LEFT JOIN pipeline_pace USING (rep, rank, pipeline_key)
LEFT JOIN load_host USING (rep, rank, pipeline_key)
LEFT JOIN load_room USING (rep, rank, pipeline_key)
LEFT JOIN load_restart USING (rep, rank, pipeline_key)
ORDER BY rep, rank, pipeline_key, pipeline_load.op_id

-- How long each dataset operator worked for a row and for a batch, in the steady state.
--
-- The work that the diagnosis and the comparison use: see the view load_service.
--
-- Reads: load_service, pipeline_tree?
-- Ranks: apart
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep                bigint   repetition
--   rank               bigint   process rank
--   pipeline_key       varchar  equal keys are the same pipeline again
--   op_id              bigint   operator of that pipeline
--   op_type            varchar  such as MapOp
--   workers            bigint   parallel workers
--   source             varchar  log | hook | both: MindSpore's timing lines, timed calls of its Python
--   batches            bigint   batches the figures are from
--   rows               bigint   rows  worked on for them
--   rows_per_batch     double   rows  worked on for one batch
--   mean_ns            double   ns    time of a worker for one row
--   p90_ns             double   ns    90th percentile of the batches' or intervals' mean rows, interpolated
--   max_ns             bigint   ns    longest single row
--   work_per_batch_ns  double   ns    summed time of all workers for one batch
--   io_share           double   0..1  part of the time spent reading; null when the operator does not say
WITH operator AS (
  SELECT
    rep, rank, pipeline_key, op_id,
    max(op_type) AS op_type,
    max(workers) AS workers
  FROM pipeline_tree
  GROUP BY ALL
)

SELECT
  rep, rank, pipeline_key, op_id, operator.op_type, operator.workers, load_service.source, load_service.batches,
  load_service.rows, load_service.rows_per_batch,
  load_service.row_work_ns AS mean_ns,
  load_service.p90_row_ns AS p90_ns,
  load_service.max_row_ns AS max_ns,
  load_service.work_ns AS work_per_batch_ns,
  load_service.io_share
FROM load_service
LEFT JOIN operator USING (rep, rank, pipeline_key, op_id)
ORDER BY rep, rank, pipeline_key, op_id

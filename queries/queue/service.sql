-- How long each dataset operator worked for a row and for a batch.
--
-- Reads: op_service, pipeline, pipeline_op
-- Gives, one row per (rep, rank, pipeline_key, op_id), in that order:
--   rep                bigint   repetition
--   rank               bigint   process rank
--   pipeline_key       varchar  equal keys are the same pipeline again
--   op_id              bigint   operator of that pipeline
--   op_type            varchar  such as MapOp
--   workers            bigint   parallel workers
--   batches            bigint   batches with a service time
--   rows               bigint   rows  rows counted in them
--   mean_ns            double   ns    time of a worker for one row, weighted by rows
--   p90_ns             double   ns    90th percentile of the batches' mean times, interpolated
--   max_ns             bigint   ns    longest single row
--   work_per_batch_ns  double   ns    summed time of all workers for one batch
--   io_share           double   0..1  part of the time spent reading; null when the operator does not say
WITH service AS (
  SELECT
    op_service.rep,
    op_service.rank,
    coalesce(pipeline.pipeline_key, CAST(op_service.pipeline_id AS VARCHAR)) AS pipeline_key,
    op_service.op_id,
    pipeline_op.op_type,
    pipeline_op.workers,
    op_service.avg_ns,
    op_service.rows,
    coalesce(op_service.max_ns, op_service.avg_ns) AS max_ns,
    op_service.avg_ns * op_service.rows AS work_ns,
    op_service.io_ns * op_service.rows AS io_work_ns
  FROM op_service
  LEFT JOIN pipeline
    ON
      op_service.rep = pipeline.rep
      AND op_service.rank = pipeline.rank
      AND op_service.pipeline_id = pipeline.pipeline_id
  LEFT JOIN pipeline_op
    ON
      op_service.rep = pipeline_op.rep
      AND op_service.rank = pipeline_op.rank
      AND op_service.pipeline_id = pipeline_op.pipeline_id
      AND op_service.op_id = pipeline_op.op_id
)

SELECT
  rep,
  rank,
  pipeline_key,
  op_id,
  max(op_type) AS op_type,
  max(workers) AS workers,
  count(avg_ns) AS batches,
  CAST(sum(rows) AS BIGINT) AS rows,
  sum(work_ns) / nullif(sum(rows) FILTER (WHERE work_ns IS NOT NULL), 0) AS mean_ns,
  percentile_cont(0.9e0) WITHIN GROUP (ORDER BY avg_ns) AS p90_ns,
  max(max_ns) AS max_ns,
  avg(work_ns) AS work_per_batch_ns,
  sum(io_work_ns) / nullif(sum(work_ns) FILTER (WHERE io_work_ns IS NOT NULL), 0) AS io_share
FROM service
GROUP BY rep, rank, pipeline_key, op_id
ORDER BY rep, rank, pipeline_key, op_id

-- Frames of source locations, each with the frame that called it.
--
-- Reads: stack
-- Gives, one row per (rep, rank, stack_id), in that order:
--   rep        bigint   repetition
--   rank       bigint   process rank
--   stack_id   bigint   identity within the rank
--   parent_id  bigint   stack_id of the caller; null for the outermost frame
--   frame      varchar  such as `file.py(12): function`
SELECT
  rep, rank, stack_id, parent_id, frame
FROM stack
WHERE stack_id IS NOT NULL
ORDER BY rep, rank, stack_id

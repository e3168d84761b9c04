-- Rows of the answers that were written down with a run, if they were made of what it holds now.
--
-- Reads: kept_answer
-- Takes:
--   $made_of     varchar   hash of the tables and the queries
--   $most_bytes  bigint    no rows are given that are longer than so many bytes together
-- Gives, one row per (query, asked, place), in that order:
--   query     varchar   name of the query
--   asked     varchar   its parameters, as JSON
--   place     bigint    position of the row, from 1; row 0 has the number of rows
--   row_text  varchar   values in the order of the query's columns, as JSON
SELECT
  query,
  asked,
  place,
  row_text
FROM kept_answer
WHERE made_of = $made_of AND query IS NOT NULL AND asked IS NOT NULL AND place IS NOT NULL AND row_text IS NOT NULL
QUALIFY sum(strlen(query) + strlen(asked) + strlen(row_text)) OVER () <= $most_bytes
ORDER BY query, asked, place

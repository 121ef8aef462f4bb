-- The size of each table with its indexes, and of the larger indexes. Partitions count as
-- their table.
WITH tables AS (
	SELECT c.oid, coalesce(pg_partition_root(c.oid), c.oid::regclass)::text AS name
	FROM pg_class c WHERE c.relnamespace IN ('public'::regnamespace, 'partitions'::regnamespace) AND c.relkind = 'r'
), parts AS (
	SELECT name AS table, 'rows' AS part, pg_table_size(oid) AS bytes FROM tables
	UNION ALL
	SELECT name, coalesce(pg_partition_root(i.indexrelid), i.indexrelid::regclass)::text, pg_relation_size(i.indexrelid)
	FROM tables JOIN pg_index i ON i.indrelid = oid
), sizes AS (
	SELECT parts.table, part, sum(bytes) AS bytes FROM parts GROUP BY parts.table, part
)
SELECT sizes.table, CASE WHEN bytes >= total / 200 THEN part ELSE 'the rest' END AS part, sum(bytes)::float8
FROM sizes, (SELECT sum(bytes) AS total FROM sizes) t
GROUP BY 1, 2 HAVING sum(bytes) >= max(total) / 200 ORDER BY sum(sum(bytes)) OVER (PARTITION BY sizes.table) DESC, sum(bytes) DESC;

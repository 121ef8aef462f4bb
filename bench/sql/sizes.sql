-- The size of the largest tables with their indexes. Partitions count as their table.
SELECT coalesce(t.name, 'everything'), sum(bytes)::float8
FROM (SELECT coalesce(pg_partition_root(oid), oid::regclass)::text AS name, pg_total_relation_size(oid) AS bytes
	FROM pg_class WHERE relnamespace IN ('public'::regnamespace, 'partitions'::regnamespace) AND relkind = 'r') t
GROUP BY ROLLUP (t.name) ORDER BY 2 DESC LIMIT 10

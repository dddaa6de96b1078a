-- The tables of Millrace's store, in the schema that replaces {{schema}}. Keys are bytes, so that their order is that of the bytes
-- whatever the database's collation.

CREATE TABLE {{schema}}.layout (version int NOT NULL);

CREATE TABLE {{schema}}.items (
	place     smallint NOT NULL, -- 1 journal, 2 work, 3 definitions
	partition bytea    NOT NULL,
	sort      bytea    NOT NULL,
	version   bigint   NOT NULL,
	token     text     NOT NULL, -- of the write that put it
	value     bytea    NOT NULL,
	expires   timestamptz,
	PRIMARY KEY (place, partition, sort)
) WITH (
	fillfactor = 75, -- so that most updates stay on their page, without a change of an index
	autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1
);
ALTER TABLE {{schema}}.items ALTER COLUMN value SET STORAGE EXTERNAL; -- large ones are not worth the time to compress them
CREATE INDEX items_expires ON {{schema}}.items (expires) WHERE expires IS NOT NULL;

CREATE TABLE {{schema}}.sequencers (
	place          smallint    NOT NULL,
	partition      bytea       NOT NULL,
	sort           bytea       NOT NULL,
	position       bigint      NOT NULL DEFAULT 0,
	last_id        bigint      NOT NULL DEFAULT 0,
	floor_position bigint      NOT NULL DEFAULT 0,
	floor_id       bigint      NOT NULL DEFAULT 0,
	used           timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (place, partition, sort)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000);

-- write applies operations as a whole or not at all. It returns a row for each whose condition does not hold, with the item that was found,
-- and has then changed nothing. If others change an item meanwhile it fails with serialization_failure.
--
-- It changes first, and looks only where fewer rows were changed than there should be: then the block undoes what it did. Conditions
-- nearly always hold, and a look costs each item another search of the index.
--
-- The operations of a kind are sorted by key. Kinds: 1 replace the wanted version, 2 put where there is none, 3 put; 4 delete the wanted
-- version, 5 delete; 6 check the wanted version, 7 check that there is none. Counts says how many there are of each.
CREATE FUNCTION {{schema}}.write(
	counts int[], kinds smallint[], wanted bigint[], places smallint[], partitions bytea[], sorts bytea[],
	versions bigint[], contents bytea[], ends timestamptz[], mark text
) RETURNS TABLE (op int, there boolean, version bigint, token text, value bytea, expires timestamptz) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off -- a plan is kept, and the table may have been small
AS $$
#variable_conflict use_column
DECLARE
	changed int;
BEGIN
	BEGIN
		IF counts[1] > 0 THEN
			UPDATE {{schema}}.items i SET version = k.version, token = mark, value = k.content, expires = k.ends
				FROM unnest(kinds, wanted, places, partitions, sorts, versions, contents, ends)
					AS k(kind, wanted, place, partition, sort, version, content, ends)
				WHERE k.kind = 1 AND i.place = k.place AND i.partition = k.partition AND i.sort = k.sort AND i.version = k.wanted;
			GET DIAGNOSTICS changed = ROW_COUNT;
			IF changed <> counts[1] THEN
				RAISE EXCEPTION 'an item was changed meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
		END IF;
		IF counts[2] + counts[7] > 0 THEN -- a check, too, puts an item and takes it away again: whoever would put one waits for this transaction
			INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
				SELECT k.place, k.partition, k.sort, k.version, mark, k.content, k.ends
				FROM unnest(kinds, places, partitions, sorts, versions, contents, ends) AS k(kind, place, partition, sort, version, content, ends)
				WHERE k.kind IN (2, 7)
				ON CONFLICT DO NOTHING;
			GET DIAGNOSTICS changed = ROW_COUNT;
			IF changed <> counts[2] + counts[7] THEN
				RAISE EXCEPTION 'an item was changed meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
		END IF;
		IF counts[3] > 0 THEN
			INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
				SELECT k.place, k.partition, k.sort, k.version, mark, k.content, k.ends
				FROM unnest(kinds, places, partitions, sorts, versions, contents, ends) AS k(kind, place, partition, sort, version, content, ends)
				WHERE k.kind = 3
				ON CONFLICT (place, partition, sort) DO UPDATE SET version = EXCLUDED.version, token = EXCLUDED.token,
					value = EXCLUDED.value, expires = EXCLUDED.expires;
		END IF;
		IF counts[6] > 0 THEN
			PERFORM FROM unnest(kinds, wanted, places, partitions, sorts) AS k(kind, wanted, place, partition, sort), {{schema}}.items i
				WHERE k.kind = 6 AND i.place = k.place AND i.partition = k.partition AND i.sort = k.sort AND i.version = k.wanted
				FOR SHARE OF i;
			GET DIAGNOSTICS changed = ROW_COUNT;
			IF changed <> counts[6] THEN
				RAISE EXCEPTION 'an item was changed meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
		END IF;
		IF counts[4] + counts[5] + counts[7] > 0 THEN
			WITH gone AS (
				DELETE FROM {{schema}}.items i
					USING unnest(kinds, wanted, places, partitions, sorts) AS k(kind, wanted, place, partition, sort)
					WHERE k.kind IN (4, 5, 7) AND i.place = k.place AND i.partition = k.partition AND i.sort = k.sort
						AND (k.kind <> 4 OR i.version = k.wanted)
					RETURNING k.kind
			) SELECT count(*) FILTER (WHERE kind <> 5) INTO changed FROM gone;
			IF changed <> counts[4] + counts[7] THEN
				RAISE EXCEPTION 'an item was changed meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
		END IF;
	EXCEPTION WHEN serialization_failure THEN
		RETURN QUERY
			SELECT k.n::int, i.version IS NOT NULL, i.version, i.token, i.value, i.expires
			FROM unnest(kinds, wanted, places, partitions, sorts) WITH ORDINALITY AS k(kind, wanted, place, partition, sort, n)
			LEFT JOIN LATERAL (SELECT t.version, t.token, t.value, t.expires FROM {{schema}}.items t
				WHERE t.place = k.place AND t.partition = k.partition AND t.sort = k.sort LIMIT 1) i ON true
			WHERE CASE WHEN k.kind IN (1, 4, 6) THEN i.version IS DISTINCT FROM k.wanted WHEN k.kind IN (2, 7) THEN i.version IS NOT NULL END;
		IF FOUND THEN
			RETURN;
		END IF;
		RAISE;
	END;
END $$;

-- reserve takes the next position of a sequencer and ids new ids, the first one now or the next. It returns no row where now is more than
-- an hour ahead of the last id and of the database's clock, or where an id would be larger than most.
CREATE FUNCTION {{schema}}.reserve(at_place smallint, at_partition bytea, at_sort bytea, ids bigint, now_micros bigint, lead bigint, most bigint)
RETURNS TABLE (new_position bigint, new_last_id bigint, at_floor_position bigint, at_floor_id bigint) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY
		INSERT INTO {{schema}}.sequencers AS s (place, partition, sort, position, last_id)
		SELECT at_place, at_partition, at_sort, 1, now_micros + ids - 1
			WHERE now_micros + ids - 1 <= most AND (
				now_micros - lead <= extract(epoch FROM clock_timestamp()) * 1000000
				OR EXISTS (SELECT FROM {{schema}}.sequencers t
					WHERE t.place = at_place AND t.partition = at_partition AND t.sort = at_sort AND now_micros - lead <= t.last_id))
		ON CONFLICT (place, partition, sort) DO UPDATE SET
			position = s.position + 1, last_id = greatest(now_micros, s.last_id + 1) + ids - 1, used = now()
			WHERE greatest(now_micros, s.last_id + 1) + ids - 1 <= most
		RETURNING s.position, s.last_id, s.floor_position, s.floor_id;
END $$;

-- The outbox holds what transactions of other programs ask for: it is there if and when they commit, and a server makes jobs and events of it.
CREATE TABLE {{schema}}.outbox (
	id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	call   text        NOT NULL,
	body   text        NOT NULL,
	made   timestamptz NOT NULL DEFAULT now(),
	failed text        -- why it was refused; such rows stay until somebody removes them
);

-- add_job asks for a job in the caller's transaction: its fields are those of POST /api/v1/jobs. It returns the number in the outbox.
CREATE FUNCTION {{schema}}.add_job(job json) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
	made bigint;
BEGIN
	IF json_typeof(job) IS DISTINCT FROM 'object' OR coalesce(job ->> 'topic', '') = '' THEN
		RAISE EXCEPTION 'a job is a JSON object with a topic' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	INSERT INTO {{schema}}.outbox (call, body) VALUES ('job', job::text) RETURNING id INTO made;
	PERFORM pg_notify('{{channel}}', '');
	RETURN made;
END $$;

-- emit asks for events in the caller's transaction: an array, as in POST /jobscheduler/master/api/event, or one of its elements. It
-- returns the number in the outbox.
CREATE FUNCTION {{schema}}.emit(events json) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
	made bigint;
BEGIN
	IF json_typeof(events) = 'object' THEN
		events := json_build_array(events);
	END IF;
	IF json_typeof(events) IS DISTINCT FROM 'array' OR json_array_length(events) = 0 THEN
		RAISE EXCEPTION 'events are a JSON array with at least one' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	INSERT INTO {{schema}}.outbox (call, body) VALUES ('event', events::text) RETURNING id INTO made;
	PERFORM pg_notify('{{channel}}', '');
	RETURN made;
END $$;

-- The functions of Millrace's store, in the schema that replaces {{schema}}. Programs of all versions that use the schema call them: what is
-- changed here must do for older ones too.

-- write applies operations as a whole or not at all. It returns a row for each whose condition does not hold, with the item that was found,
-- and has then changed nothing. If others change an item meanwhile it fails with serialization_failure.
--
-- It changes first, and looks only where fewer rows were changed than there should be: then the block undoes what it did. Conditions
-- nearly always hold, and a look costs each item another search of the index.
--
-- Kinds of operations: 1 replace the wanted version, 2 put where there is none, 3 put; 4 delete the wanted version, 5 delete; 6 check the
-- wanted version, 7 check that there is none. They are sorted by kind, those of a kind by key, and counts says how many there are of each.
-- All writes take their locks in one order: of the kinds as they are gone through here, and of the keys of each.
--
-- A few operations of a kind are made one by one: a statement over arrays is planned anew for each call as long as they are short, which takes
-- longer than they do.
CREATE OR REPLACE FUNCTION {{schema}}.write(
	counts int[], kinds smallint[], wanted bigint[], places smallint[], partitions bytea[], sorts bytea[],
	versions bigint[], contents bytea[], ends timestamptz[], mark text
) RETURNS TABLE (op int, there boolean, version bigint, token text, value bytea, expires timestamptz) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off -- a plan is kept, and the table may have been small
AS $$
#variable_conflict use_column
DECLARE
	few     CONSTANT int := 8;
	lasts   int[];     -- the last operation of each kind
	kind    int;
	a       int;       -- the first and the last operation of the kind
	z       int;
	changed int;       -- rows, of so many operations
	rows    int;
BEGIN
	FOR n IN 1..7 LOOP
		lasts[n] := coalesce(lasts[n-1], 0) + counts[n];
	END LOOP;
	BEGIN
		FOREACH kind IN ARRAY ARRAY[1, 2, 7, 3, 6, 4, 5] LOOP
			CONTINUE WHEN counts[kind] = 0;
			z := lasts[kind];
			a := z - counts[kind] + 1;
			changed := 0;
			IF counts[kind] <= few THEN
				FOR n IN a..z LOOP
					CASE kind
					WHEN 1 THEN
						UPDATE {{schema}}.items i SET version = versions[n], token = mark, value = contents[n], expires = ends[n]
							WHERE i.place = places[n] AND i.partition = partitions[n] AND i.sort = sorts[n] AND i.version = wanted[n];
					WHEN 2, 7 THEN
						INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
							VALUES (places[n], partitions[n], sorts[n], versions[n], mark, contents[n], ends[n]) ON CONFLICT DO NOTHING;
					WHEN 3 THEN
						INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
							VALUES (places[n], partitions[n], sorts[n], versions[n], mark, contents[n], ends[n])
							ON CONFLICT (place, partition, sort) DO UPDATE SET version = EXCLUDED.version, token = EXCLUDED.token,
								value = EXCLUDED.value, expires = EXCLUDED.expires;
					WHEN 4 THEN
						DELETE FROM {{schema}}.items i
							WHERE i.place = places[n] AND i.partition = partitions[n] AND i.sort = sorts[n] AND i.version = wanted[n];
					WHEN 5 THEN
						DELETE FROM {{schema}}.items i WHERE i.place = places[n] AND i.partition = partitions[n] AND i.sort = sorts[n];
					WHEN 6 THEN
						PERFORM FROM {{schema}}.items i
							WHERE i.place = places[n] AND i.partition = partitions[n] AND i.sort = sorts[n] AND i.version = wanted[n] FOR SHARE;
					END CASE;
					GET DIAGNOSTICS rows = ROW_COUNT;
					changed := changed + rows;
				END LOOP;
			ELSE
				CASE kind
				WHEN 1 THEN
					UPDATE {{schema}}.items i SET version = k.version, token = mark, value = k.content, expires = k.ends
						FROM unnest(wanted[a:z], places[a:z], partitions[a:z], sorts[a:z], versions[a:z], contents[a:z], ends[a:z])
							AS k(wanted, place, partition, sort, version, content, ends)
						WHERE i.place = k.place AND i.partition = k.partition AND i.sort = k.sort AND i.version = k.wanted;
				WHEN 2, 7 THEN
					INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
						SELECT k.place, k.partition, k.sort, k.version, mark, k.content, k.ends
						FROM unnest(places[a:z], partitions[a:z], sorts[a:z], versions[a:z], contents[a:z], ends[a:z])
							AS k(place, partition, sort, version, content, ends)
						ON CONFLICT DO NOTHING;
				WHEN 3 THEN
					INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
						SELECT k.place, k.partition, k.sort, k.version, mark, k.content, k.ends
						FROM unnest(places[a:z], partitions[a:z], sorts[a:z], versions[a:z], contents[a:z], ends[a:z])
							AS k(place, partition, sort, version, content, ends)
						ON CONFLICT (place, partition, sort) DO UPDATE SET version = EXCLUDED.version, token = EXCLUDED.token,
							value = EXCLUDED.value, expires = EXCLUDED.expires;
				WHEN 4 THEN
					DELETE FROM {{schema}}.items i
						USING unnest(wanted[a:z], places[a:z], partitions[a:z], sorts[a:z]) AS k(wanted, place, partition, sort)
						WHERE i.place = k.place AND i.partition = k.partition AND i.sort = k.sort AND i.version = k.wanted;
				WHEN 5 THEN
					DELETE FROM {{schema}}.items i
						USING unnest(places[a:z], partitions[a:z], sorts[a:z]) AS k(place, partition, sort)
						WHERE i.place = k.place AND i.partition = k.partition AND i.sort = k.sort;
				WHEN 6 THEN
					PERFORM FROM unnest(wanted[a:z], places[a:z], partitions[a:z], sorts[a:z]) AS k(wanted, place, partition, sort), {{schema}}.items i
						WHERE i.place = k.place AND i.partition = k.partition AND i.sort = k.sort AND i.version = k.wanted
						FOR SHARE OF i;
				END CASE;
				GET DIAGNOSTICS changed = ROW_COUNT;
			END IF;
			IF changed <> counts[kind] AND kind <> 5 THEN
				RAISE EXCEPTION 'an item was changed meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
			IF kind = 7 THEN -- what was put is taken away again: whoever would put one waits for this transaction
				DELETE FROM {{schema}}.items i
					USING unnest(places[a:z], partitions[a:z], sorts[a:z]) AS k(place, partition, sort)
					WHERE i.place = k.place AND i.partition = k.partition AND i.sort = k.sort;
			END IF;
		END LOOP;
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
CREATE OR REPLACE FUNCTION {{schema}}.reserve(at_place smallint, at_partition bytea, at_sort bytea, ids bigint, now_micros bigint, lead bigint, most bigint)
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

-- written reports whether one of the items that are to be put has the mark.
CREATE OR REPLACE FUNCTION {{schema}}.written(kinds smallint[], places smallint[], partitions bytea[], sorts bytea[], mark text)
RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off -- as for write
AS $$
BEGIN
	RETURN EXISTS (
		SELECT FROM unnest(kinds, places, partitions, sorts) AS k(kind, place, partition, sort), {{schema}}.items i
			WHERE k.kind <= 3 AND i.place = k.place AND i.partition = k.partition AND i.sort = k.sort AND i.token = mark
	);
END $$;

-- advance is write with a ticket that it takes itself, which must be the next one of a sequencer: if the one before has the position stands_at,
-- and its last id is below first_id. Otherwise nothing is done, and it returns one row with op 0: where the sequencer stands, as version and
-- last, and in there whether an item that is to be put has the mark already, since the same was done before.
--
-- The sequencer's row is taken first and is held until the commit, for which those wait who want a ticket meanwhile.
CREATE OR REPLACE FUNCTION {{schema}}.advance(
	at_place smallint, at_partition bytea, at_sort bytea, stands_at bigint, first_id bigint, new_last_id bigint,
	counts int[], kinds smallint[], wanted bigint[], places smallint[], partitions bytea[], sorts bytea[],
	versions bigint[], contents bytea[], ends timestamptz[], mark text
) RETURNS TABLE (op int, there boolean, version bigint, token text, value bytea, expires timestamptz, last bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	found_position bigint;
	found_last     bigint;
BEGIN
	UPDATE {{schema}}.sequencers s SET position = stands_at + 1, last_id = new_last_id, used = now()
		WHERE s.place = at_place AND s.partition = at_partition AND s.sort = at_sort AND s.position = stands_at AND s.last_id < first_id;
	IF NOT FOUND THEN
		SELECT s.position, s.last_id INTO found_position, found_last FROM {{schema}}.sequencers s
			WHERE s.place = at_place AND s.partition = at_partition AND s.sort = at_sort;
		RETURN QUERY SELECT 0, {{schema}}.written(kinds, places, partitions, sorts, mark),
			found_position, NULL, NULL::bytea, NULL::timestamptz, found_last;
		RETURN;
	END IF;
	IF cardinality(kinds) = 1 AND kinds[1] = 2 THEN -- as for an append, which is no more
		INSERT INTO {{schema}}.items (place, partition, sort, version, token, value, expires)
			VALUES (places[1], partitions[1], sorts[1], versions[1], mark, contents[1], ends[1]) ON CONFLICT DO NOTHING;
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	RETURN QUERY SELECT w.op, w.there, w.version, w.token, w.value, w.expires, NULL::bigint
		FROM {{schema}}.write(counts, kinds, wanted, places, partitions, sorts, versions, contents, ends, mark) w;
	IF FOUND THEN -- ids are not used again: that they rise is enough
		UPDATE {{schema}}.sequencers s SET position = stands_at
			WHERE s.place = at_place AND s.partition = at_partition AND s.sort = at_sort;
	END IF;
END $$;

-- add_job asks for a job in the caller's transaction: its fields are those of POST /api/v1/jobs. It returns the number in the outbox.
CREATE OR REPLACE FUNCTION {{schema}}.add_job(job json) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
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
CREATE OR REPLACE FUNCTION {{schema}}.emit(events json) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
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

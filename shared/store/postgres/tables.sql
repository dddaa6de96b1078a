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

-- The outbox holds what transactions of other programs ask for: it is there if and when they commit, and a server makes jobs and events of it.
CREATE TABLE {{schema}}.outbox (
	id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	call   text        NOT NULL,
	body   text        NOT NULL,
	made   timestamptz NOT NULL DEFAULT now(),
	failed text        -- why it was refused; such rows stay until somebody removes them
);

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/shared/store"
)

// maxPage bounds the items of a page, so that a page of large items fits into memory.
const maxPage = 256

// statements are the texts of what is asked often; the driver prepares each once for a connection.
type statements struct {
	get, getAll, write, advance, putOne, replaceOne, remove, reserve, sequence, raise, expire, forget, loadItems, loadSequencers string

	query map[shape]string
}

// shape is what a range asks for: each has a statement of its own, so that each uses the index in full.
type shape struct{ bounded, backward bool }

const columns = "version, token, value, expires"

func statementsFor(schema string) statements {
	items, sequencers := schema+".items", schema+".sequencers"
	s := statements{
		get: "SELECT " + columns + " FROM " + items + " WHERE place = $1 AND partition = $2 AND sort = $3",
		getAll: "SELECT k.n, i.version, i.token, i.value, i.expires FROM unnest($1::smallint[], $2::bytea[], $3::bytea[]) " +
			"WITH ORDINALITY AS k(place, partition, sort, n), LATERAL (SELECT " + columns + " FROM " + items + " AS t " +
			"WHERE t.place = k.place AND t.partition = k.partition AND t.sort = k.sort LIMIT 1) AS i",
		write:   "SELECT op, there, " + columns + " FROM " + schema + ".write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
		advance: "SELECT op, there, " + columns + ", last FROM " + schema + ".advance($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
		putOne: "INSERT INTO " + items + " (place, partition, sort, version, token, value, expires) VALUES ($1, $2, $3, $4, $5, $6, $7) " +
			"ON CONFLICT DO NOTHING",
		replaceOne: "UPDATE " + items + " SET version = $4, token = $5, value = $6, expires = $7 " +
			"WHERE place = $1 AND partition = $2 AND sort = $3 AND version = $8",
		remove: "DELETE FROM " + items + " WHERE place = $1 AND partition = $2 AND sort IN (SELECT sort FROM " + items +
			" WHERE place = $1 AND partition = $2 AND sort >= $3 AND ($4::bytea IS NULL OR sort < $4) ORDER BY sort LIMIT $5)",
		reserve: "SELECT * FROM " + schema + ".reserve($1, $2, $3, $4, $5, $6, $7)",
		sequence: "SELECT position, last_id, floor_position, floor_id FROM " + sequencers +
			" WHERE place = $1 AND partition = $2 AND sort = $3",
		raise: "INSERT INTO " + sequencers + " AS s (place, partition, sort, floor_position, floor_id) VALUES ($1, $2, $3, $4, $5) " +
			"ON CONFLICT (place, partition, sort) DO UPDATE SET floor_position = EXCLUDED.floor_position, floor_id = EXCLUDED.floor_id " +
			"WHERE s.floor_position < EXCLUDED.floor_position",
		expire: "DELETE FROM " + items + " WHERE (place, partition, sort) IN (SELECT place, partition, sort FROM " + items +
			" WHERE expires < now() - interval '1 minute' ORDER BY expires LIMIT $1 FOR UPDATE SKIP LOCKED)",
		forget: "DELETE FROM " + sequencers + " WHERE place = $1 AND partition >= $2 AND partition < $3 AND used < now() - $4::interval",
		loadItems: "INSERT INTO " + items + " (place, partition, sort, version, token, value, expires) " +
			"SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::text[], $6::bytea[], $7::timestamptz[]) " +
			"ON CONFLICT (place, partition, sort) DO UPDATE SET version = EXCLUDED.version, token = EXCLUDED.token, value = EXCLUDED.value, expires = EXCLUDED.expires",
		loadSequencers: "INSERT INTO " + sequencers + " (place, partition, sort, position, last_id, floor_position, floor_id) " +
			"SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) " +
			"ON CONFLICT (place, partition, sort) DO UPDATE SET position = EXCLUDED.position, last_id = EXCLUDED.last_id, " +
			"floor_position = EXCLUDED.floor_position, floor_id = EXCLUDED.floor_id",
		query: map[shape]string{},
	}
	for _, bounded := range []bool{false, true} {
		for _, backward := range []bool{false, true} {
			text := "SELECT sort, " + columns + " FROM " + items + " WHERE place = $1 AND partition = $2 AND sort >= $3"
			if bounded {
				text += " AND sort < $5"
			}
			if text += " ORDER BY sort"; backward {
				text += " DESC"
			}
			s.query[shape{bounded, backward}] = text + " LIMIT $4"
		}
	}
	return s
}

// content is what a row holds besides its key.
type content struct {
	version int64
	token   string
	value   []byte
	expires *time.Time
}

func (c *content) item(key store.Key) store.Item {
	item := store.Item{Key: key, Version: c.version, Token: c.token, Value: c.value}
	if c.expires != nil {
		item.Expires = *c.expires
	}
	return item
}

// Get reads the items by one statement, which others may share a round trip with (see [reads]).
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	found := make([]*store.Item, len(keys))
	one := &read{sql: s.sql.get}
	if len(keys) == 1 {
		one.args = []any{places[keys[0].Table], []byte(keys[0].Partition), []byte(keys[0].Sort)}
		one.take = func(rows pgx.Rows) error {
			clear(found) // of a try that was cut off
			var c content
			_, err := pgx.ForEachRow(rows, []any{&c.version, &c.token, &c.value, &c.expires}, func() error {
				item := c.item(keys[0])
				found[0] = &item
				return nil
			})
			return err
		}
	} else {
		in, partitions, sorts := make([]int16, len(keys)), make([][]byte, len(keys)), make([][]byte, len(keys))
		for n, key := range keys {
			in[n], partitions[n], sorts[n] = places[key.Table], []byte(key.Partition), []byte(key.Sort)
		}
		one.sql, one.args = s.sql.getAll, []any{in, partitions, sorts}
		one.take = func(rows pgx.Rows) error {
			clear(found)
			var n int64
			var c content
			_, err := pgx.ForEachRow(rows, []any{&n, &c.version, &c.token, &c.value, &c.expires}, func() error {
				item := c.item(keys[n-1])
				found[n-1], c = &item, content{}
				return nil
			})
			return err
		}
	}
	if err := s.reads.do(ctx, one); err != nil {
		return nil, s.readFailure(ctx, "get", err)
	}
	return found, nil
}

// Query reads one page by one statement, of at most 256 items. Small pages may share a round trip with others (see [reads]).
func (s *Store) Query(ctx context.Context, r store.Range) (page store.Page, err error) {
	limit := maxPage
	if r.Limit > 0 {
		limit = min(r.Limit, maxPage)
	}
	one := &read{sql: s.sql.query[shape{r.To != "", r.Backward}], args: []any{places[r.Table], []byte(r.Partition), []byte(r.From), limit + 1}}
	if r.To != "" {
		one.args = append(one.args, []byte(r.To))
	}
	got := new(store.Page) // whoever makes the read for others may be later than ctx
	one.take = func(rows pgx.Rows) error {
		*got = store.Page{}
		var sort []byte
		var c content
		_, err := pgx.ForEachRow(rows, []any{&sort, &c.version, &c.token, &c.value, &c.expires}, func() error {
			key := store.Key{Table: r.Table, Partition: r.Partition, Sort: string(sort)}
			got.Items = append(got.Items, c.item(key))
			c = content{}
			return nil
		})
		return err
	}
	if limit <= smallPage || store.Company(ctx) != nil {
		err = s.reads.do(ctx, one)
	} else {
		err = s.reads.alone(ctx, one)
	}
	if err != nil {
		return store.Page{}, s.readFailure(ctx, "query", err)
	}
	if page = *got; len(page.Items) > limit {
		page.Items, page.More = page.Items[:limit], true
	}
	return page, nil
}

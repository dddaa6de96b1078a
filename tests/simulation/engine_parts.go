package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// growing are lines that may lie in several parts.
var growing = []layout.Line{
	{Queue: "main"}, {Queue: "few"}, {Queue: "main", Job: "/far/main"}, {Queue: "wide", Job: "/far/wide"}, {Queue: "few", Job: "/far/few"},
}

// grower starts an actor that makes lines grow, as a process does that adds much to them, and that takes part in sharing them out now and
// then, but claims nothing, as if it had died.
func (r *engineRun) grower(name string, at int) {
	a := r.actor(name, at)
	r.upkeep.Go(func() {
		for n := 0; !r.is(&r.over); n++ {
			l := growing[a.luck.IntN(len(growing))]
			if err := grow(r.ctx, a.home.now().line, l, 4<<(2*a.luck.IntN(2)), a.luck.IntN(2) == 0, fmt.Sprint(a.name, n)); err == nil {
				r.count("grown")
			}
			a.part()
			a.rest(quiet)
		}
	})
}

// grow makes a line lie in so many parts, and be shared out.
func grow(ctx context.Context, s store.Store, l layout.Line, parts int, shares bool, token string) error {
	post, version, err := layout.LoadSignpost(ctx, s, l)
	if err != nil {
		return err
	}
	post.Write, post.Read, post.Busy = parts, max(parts, post.Read), time.Now().UnixMicro()
	if shares {
		post = post.With("gone", post.Busy)
	}
	cond := store.Absent
	if version > 0 {
		cond = store.VersionIs(version)
	}
	item := store.Item{Key: layout.SignpostKey(l), Version: post.Busy, Value: layout.Encode(post)}
	return s.Write(ctx, store.Write{Token: token, Ops: []store.Op{store.Put(item, cond)}})
}

package definition

import (
	"path"
	"strings"

	"github.com/millrace/millrace/shared/strict"
)

// count reads a whole number from 1.
func count(to *int) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		number, ok := d.Integer(n, path)
		if ok && number < 1 {
			d.Fail(n, path, "want at least 1")
		}
		*to = number
	}
}

func (r *reader) lock(d *strict.Document, n *strict.Node, path string) {
	var l Lock
	d.Object(n, path, strict.Fields{"name": name(&l.Name), "max_shared": count(&l.MaxShared)})
	d.Need(n, path, "name")
	r.claim(d, n, path, "lock", l.Name)
	r.set.Locks = append(r.set.Locks, l)
}

// setbacks reads the delays of orders that a job sets back, by rising counts.
func setbacks(to *[]Setback) strict.Visit {
	return each(func(d *strict.Document, n *strict.Node, path string) {
		var s Setback
		d.Object(n, path, strict.Fields{
			"setback_count": count(&s.Count),
			"delay": func(d *strict.Document, n *strict.Node, path string) {
				s.Delay, _ = d.Length(n, path)
			},
			"is_maximum": boolean(&s.IsMaximum),
		})
		d.Need(n, path, "setback_count")
		if before := *to; len(before) > 0 && s.Count > 0 {
			switch last := before[len(before)-1]; {
			case s.Count <= last.Count:
				d.Fail(n, path, "setback_count %d does not come after %d", s.Count, last.Count)
			case last.IsMaximum:
				d.Fail(n, path, "setback_count %d is above the maximum, %d", s.Count, last.Count)
			}
		}
		*to = append(*to, s)
	})
}

// scheduledOrder reads the order that a schedule makes.
func (r *reader) scheduledOrder(to **ScheduledOrder) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		o := &ScheduledOrder{}
		*to = o
		d.Object(n, path, strict.Fields{
			"chain": r.ofChain(&o.Chain),
			"id":    orderID(&o.ID),
		})
		d.Need(n, path, "chain", "id")
	}
}

// ofChain reads the path of a declared chain.
func (r *reader) ofChain(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = d.Text(n, path)
		r.finally(func() {
			if *to != "" && !r.declared("job chain", *to) {
				d.Fail(n, path, "no job chain %q is declared", *to)
			}
		})
	}
}

// fileOrder reads what starts orders for files.
func (r *reader) fileOrder(d *strict.Document, n *strict.Node, path string) {
	var f FileOrder
	d.Object(n, path, strict.Fields{
		"chain":     r.ofChain(&f.Chain),
		"directory": directory(&f.Directory),
		"pattern":   filePattern(&f.Pattern),
		"steady":    duration(&f.Steady),
		"done":      fileDone(&f.Done),
	})
	d.Need(n, path, "chain", "directory")
	if f.Directory != "" {
		r.claim(d, n, path, "file order", strings.TrimSpace(f.Directory+" "+f.Pattern))
	}
	r.set.FileOrders = append(r.set.FileOrders, f)
}

// bucketRoot begins what is a place in a bucket of S3.
const bucketRoot = "s3://"

func directory(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		*to = d.Text(n, path)
		bucket, isBucket := strings.CutPrefix(*to, bucketRoot)
		switch {
		case *to == "" || strings.HasPrefix(*to, "/"):
		case !isBucket || bucket == "" || strings.HasPrefix(bucket, "/"):
			d.Fail(n, path, "want a directory such as /in, or s3://BUCKET/PREFIX")
		}
	}
}

func filePattern(to *string) strict.Visit {
	return func(d *strict.Document, n *strict.Node, at string) {
		*to = d.Text(n, at)
		if _, err := path.Match(*to, ""); err != nil || strings.Contains(*to, "/") {
			d.Fail(n, at, "%q is no pattern of names such as *.csv", *to)
		}
	}
}

func fileDone(to *FileDone) strict.Visit {
	return func(d *strict.Document, n *strict.Node, path string) {
		d.Object(n, path, strict.Fields{
			"move_to": directory(&to.MoveTo),
			"remove": func(d *strict.Document, n *strict.Node, path string) {
				if to.Remove = d.Boolean(n, path); !to.Remove {
					d.Fail(n, path, "want true, or move_to: a file that stays would keep its order")
				}
			},
		})
		exactlyOne(d, n, path, "move_to", "remove")
	}
}

// lostChains returns a mistake for each chain that file orders need and the set does not declare.
func (s *Set) lostChains() []strict.Mistake {
	var lost []strict.Mistake
	for _, f := range s.FileOrders {
		if !s.declares("job chain", f.Chain) {
			lost = append(lost, strict.Mistake{
				Path:    "job_chains",
				Message: "the server's own file starts orders of the job chain " + f.Chain + " for the files of " + f.Directory + ": keep the chain",
			})
		}
	}
	return lost
}

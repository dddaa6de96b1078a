package services_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/tests/grants"
)

// An excuse is for grants of functions that no test here has to use.
type excuse struct {
	grants.Permission
	functions, reason string
}

// beyond are grants that no test here can use, of which one that is used is no longer excused.
var beyond = []excuse{
	{grants.Permission{Action: "dynamodb:BatchWriteItem", Resource: "JournalTable"}, "sweep", "slots that were evicted a day ago"},
	{grants.Permission{Action: "lambda:InvokeFunction", Resource: "TargetFunctionArns"}, "worker", "the emulator runs no functions"},
	{grants.Permission{Action: "s3:GetObjectTagging", Resource: "FileObjectArns"}, "sweep", "the emulator copies tags without a request"},
	{grants.Permission{Action: "s3:ListBucket", Resource: "FileBucketArns"}, "sweep tasks", "what S3 tells only by it: that an object has gone"},
	{grants.Permission{Action: "s3:PutObjectTagging", Resource: "FileObjectArns"}, "sweep", "the same as s3:GetObjectTagging"},
}

// perhaps are grants that a test here uses or not: for what only happens where two meet, where one dies, or at some minutes.
var perhaps = []excuse{
	{grants.Permission{Action: "dynamodb:BatchWriteItem", Resource: "WorkTable"}, "sweep worker", "logs of what has aged, whose turn comes once in sixteen minutes; an act on many whose other process has died"},
	{grants.Permission{Action: "dynamodb:ConditionCheckItem", Resource: "WorkTable"}, "cron dashboard define enqueue-task lease sweep tasks", "the rule that a claim meets, the holder of a " +
		"unique key while it is being written, an order that somebody else has led on"},
	{grants.Permission{Action: "dynamodb:DeleteItem", Resource: "DefinitionsTable"}, "cron", "a schedule that was removed by a process which died before it had forgotten the schedule's ticks"},
	{grants.Permission{Action: "dynamodb:DeleteItem", Resource: "JournalTable"}, "sweep", "generations of snapshots that newer ones have replaced"},
	{grants.Permission{Action: "dynamodb:DeleteItem", Resource: "WorkTable"}, "cron enqueue-task", "ticks that such a process had made ahead; entries that others have moved meanwhile"},
	{grants.Permission{Action: "dynamodb:PutItem", Resource: "JournalTable"}, "read-after snapshot", "voids in place of slots whose writer died"},
	{grants.Permission{Action: "dynamodb:UpdateItem", Resource: "WorkTable"}, "cron sweep", "turns of what has fallen due in a round-robin queue, for the one that sees it first"},
}

// excused says whether a grant is among excuses.
func excused(g grant, by []excuse) bool {
	return slices.ContainsFunc(by, func(e excuse) bool {
		return e.Permission == g.Permission && slices.Contains(strings.Fields(e.functions), g.function)
	})
}

// use is what the functions have used of their permissions in all tests together.
type use struct {
	mu  sync.Mutex
	all map[grant]bool
}

// grant is a permission of a function.
type grant struct {
	function string
	grants.Permission
}

func (g grant) String() string { return fmt.Sprintf("%s: %s on %s", g.function, g.Action, g.Resource) }

var used = use{all: map[grant]bool{}}

func (u *use) note(function string, p grants.Permission) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all[grant{function, p}] = true
}

// checkGrants returns an exit status: 1 if the template grants what no test has used and nothing excuses, or an excuse
// is of no use any more, once all tests have run.
func checkGrants() int {
	used.mu.Lock()
	defer used.mu.Unlock()
	if len(used.all) == 0 || testing.Short() || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return 0 // some tests did not run
	}
	var wrong []string
	all := map[grant]bool{}
	for _, function := range functions {
		of, err := grants.Of(function)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for _, p := range of {
			g := grant{function, p}
			all[g] = true
			if !used.all[g] && !excused(g, beyond) && !excused(g, perhaps) {
				wrong = append(wrong, g.String()+" is granted, and no test uses it")
			}
			if used.all[g] && excused(g, beyond) {
				wrong = append(wrong, g.String()+" is excused, and a test uses it")
			}
		}
	}
	for _, e := range slices.Concat(beyond, perhaps) {
		for function := range strings.FieldsSeq(e.functions) {
			if g := (grant{function, e.Permission}); !all[g] {
				wrong = append(wrong, g.String()+" is excused, and not granted")
			}
		}
	}
	slices.Sort(wrong)
	for _, line := range slices.Compact(wrong) {
		fmt.Fprintln(os.Stderr, line)
	}
	return min(len(wrong), 1)
}

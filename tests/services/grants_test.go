package services_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// excuses are grants that no test here uses, or not each time, with the functions that need them nevertheless, and what for.
var excuses = []struct {
	permission
	functions, reason string
}{
	{permission{"dynamodb:BatchGetItem", "DefinitionsTable"}, "cron dashboard define enqueue-task lease sweep tasks worker", "definitions that are too long for one item"},
	{permission{"dynamodb:BatchGetItem", "JournalTable"}, "dashboard read-after snapshot", "slots that hold the causes of several events"},
	{permission{"dynamodb:BatchGetItem", "WorkTable"}, "dashboard emit enqueue-task read-after", "several items at once, such as of a request for many"},
	{permission{"dynamodb:BatchWriteItem", "JournalTable"}, "sweep", "slots that were evicted a day ago"},
	{permission{"dynamodb:BatchWriteItem", "WorkTable"}, "dashboard sweep tasks worker", "logs of tasks that have aged, and acts on many"},
	{permission{"dynamodb:ConditionCheckItem", "WorkTable"}, "cron dashboard define enqueue-task lease sweep tasks", "rules and limits that a write rests on, which are declared nowhere here"},
	{permission{"dynamodb:DeleteItem", "DefinitionsTable"}, "cron", "parts of definitions that were longer before"},
	{permission{"dynamodb:DeleteItem", "JournalTable"}, "sweep", "generations of snapshots that newer ones have replaced"},
	{permission{"dynamodb:DeleteItem", "WorkTable"}, "cron enqueue-task", "entries of indexes that move, which none does here"},
	{permission{"dynamodb:PutItem", "JournalTable"}, "read-after snapshot", "voids in place of slots whose writer died"},
	{permission{"dynamodb:Query", "WorkTable"}, "acknowledge", "places of events in a stream of several pages"},
	{permission{"dynamodb:UpdateItem", "WorkTable"}, "cron define sweep tasks", "turns of round-robin queues, and what races for them"},
	{permission{"lambda:InvokeFunction", "TargetFunctionArns"}, "worker", "the emulator runs no functions"},
	{permission{"s3:GetObjectTagging", "FileObjectArns"}, "sweep", "the emulator copies tags without a request"},
	{permission{"s3:ListBucket", "FileBucketArns"}, "sweep tasks", "what S3 tells only by it: that an object has gone"},
	{permission{"s3:PutObjectTagging", "FileObjectArns"}, "sweep", "the same"},
	{permission{"secretsmanager:GetSecretValue", "Secrets.Id"}, "acknowledge cron dashboard define emit enqueue-task lease read-after snapshot sweep tasks worker", "tests/account has a Secrets Manager, these tests have none"},
	{permission{"sqs:SendMessage", "Notices"}, "lease", "what a completion makes ready for others"},
}

// excused says whether a grant is among the excuses.
func excused(g grant) bool {
	for _, e := range excuses {
		if e.permission == g.permission && slices.Contains(strings.Fields(e.functions), g.function) {
			return true
		}
	}
	return false
}

// use is what the functions have used of their permissions in all tests together.
type use struct {
	mu  sync.Mutex
	all map[grant]bool
}

// grant is a permission of a function.
type grant struct {
	function string
	permission
}

func (g grant) String() string { return fmt.Sprintf("%s: %s on %s", g.function, g.action, g.resource) }

var used = use{all: map[grant]bool{}}

func (u *use) note(function string, p permission) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all[grant{function, p}] = true
}

// checkGrants returns an exit status: 1 if the template grants what no test has used and nothing excuses, once all tests have run.
func checkGrants() int {
	used.mu.Lock()
	defer used.mu.Unlock()
	if len(used.all) == 0 || testing.Short() || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return 0 // some tests did not run
	}
	var wrong []string
	for _, function := range functions {
		all, err := granted(function)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for _, p := range all {
			g := grant{function, p}
			if !excused(g) && !used.all[g] {
				wrong = append(wrong, g.String()+" is granted, and no test uses it")
			}
		}
	}
	slices.Sort(wrong)
	for _, line := range slices.Compact(wrong) {
		fmt.Fprintln(os.Stderr, line)
	}
	return min(len(wrong), 1)
}

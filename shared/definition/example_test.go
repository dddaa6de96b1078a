package definition_test

import (
	"fmt"

	"github.com/millrace/millrace/shared/definition"
)

func ExampleRead() {
	_, err := definition.Read("millrace.yaml", []byte(`
sources:
  crm:
    target: {http: {url: "https://example.com/sync"}}
    collections: [{name: users, schedule: "0 0/5 * ? * * *", timezone: Europe/Berlin}]
queues:
  - {name: mail, topics: ["mail/*"], parallel: 15}
schedules:
  - {name: nightly, cron: "0 0 25 * * ?", job: /sources/crm/users}
`))
	fmt.Println(err)
	// Output:
	// millrace.yaml:7: queues[0].parallel: unknown, want one of keep_jobs, max_parallel, name, ranking, retries, retry_delay, topics, type, weights
	// millrace.yaml:9: schedules[0].cron: cron expression "0 0 25 * * ?", character 5: hours go from 0 to 23
}

func ExampleDiff() {
	before, _ := definition.Read("before", []byte("jobs: [{path: /a}, {path: /b}]"))
	after, _ := definition.Read("after", []byte("jobs: [{path: /b, timeout: 90}]\nqueues: [{name: mail}]"))
	fmt.Printf("%+v\n", definition.Diff(before, after))
	fmt.Println(definition.Differences(before, after)["Job:/b"])
	// Output:
	// {Added:[Queue:/mail] Replaced:[Job:/b] Removed:[Job:/a]}
	// [{timeout  "1m30s"}]
}

func ExampleSet_JobOf() {
	set, _ := definition.Read("millrace.yaml", []byte("queues: [{name: mail, topics: ['mail/*'], retries: 3}]"))
	job, declared := set.JobOf("/topics/mail/send")
	fmt.Println(declared, job.Queue, job.Attempts, job.RetryDelay)
	// Output: false mail 4 2s
}

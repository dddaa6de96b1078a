package api

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

const (
	maxConcurrency = 10_000
	maxRetries     = 1_000_000
	maxPriority    = 1<<53 - 1 // the largest number that is exact in every client
	lastYear       = 3999      // the last one for which a job may wait
)

// newJob is what a client says of a job.
type newJob struct {
	queue.New
	retries *int64
}

// readNewJobs returns what reads requests for jobs, one after the other: how a member is read is made once for all of them.
func readNewJobs() func(location string, value jsontext.Value) (queue.New, error) {
	n := &newJob{}
	known := n.members()
	return func(location string, value jsontext.Value) (queue.New, error) {
		*n = newJob{New: queue.New{Dialect: task.Job}}
		err := readObject(location, value, known...)
		if n.retries != nil {
			if n.Attempts = -1; *n.retries >= 0 {
				n.Attempts = int(*n.retries) + 1
			}
		}
		return n.New, err
	}
}

func (n *newJob) members() []member {
	var retries int64
	return []member{
		{name: "topic", required: true, read: n.topic},
		{name: "properties", read: n.properties},
		integerMember("priority", -maxPriority, maxPriority, &n.Priority),
		{name: "run_at", read: n.runAt},
		noted(integerMember("retries", -1, maxRetries, &retries), func() { n.retries = &retries }),
		pauseMember("retry_delay", &n.RetryDelay),
		{name: "unique", read: n.unique},
		textMember("fairness_key", definition.MaxName, &n.Fairness),
		{name: "concurrency", read: n.concurrency},
		textMember("prefer_instance", definition.MaxName, &n.Prefer),
	}
}

func (n *newJob) topic(location string, value jsontext.Value) error {
	topic, err := readText(location, value)
	if err != nil {
		return err
	}
	if !definition.ValidTopic(topic) {
		return invalid(location, "%s is no topic: one is of letters, digits, _ and -, in segments with a slash between them", quoted(topic))
	}
	n.Job = queue.TopicPath(topic)
	return nil
}

// quoted returns a text of the client's, quoted and cut to 100 bytes, so that it may stand in a sentence.
func quoted(text string) string {
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "") + "…"
	}
	return strconv.Quote(text)
}

func (n *newJob) properties(location string, value jsontext.Value) error {
	if value.Kind() != '{' {
		return invalid(location, "want an object, not %s", kindOfJSON(value))
	}
	if err := limited(location, value); err != nil {
		return err
	}
	compact := value.Clone()
	err := compact.Compact()
	n.Payload = []byte(compact)
	return err
}

func (n *newJob) runAt(location string, value jsontext.Value) error {
	if err := timeMember("", &n.NotBefore).read(location, value); err != nil {
		return err
	}
	if n.NotBefore.Year() > lastYear {
		return invalid(location, "want a time up to the year %d", lastYear)
	}
	return nil
}

// unique reads a key, or a key and the time for which it is held from now on at least.
func (n *newJob) unique(location string, value jsontext.Value) error {
	key := textMember("key", definition.MaxName, &n.Unique)
	if value.Kind() == '"' {
		return key.read(location, value)
	}
	if value.Kind() != '{' {
		return invalid(location, "want a text, or an object with key and window, not %s", kindOfJSON(value))
	}
	key.required = true
	return readObject(location, value, key, lengthMember("window", &n.UniqueWindow))
}

func (n *newJob) concurrency(location string, value jsontext.Value) error {
	var limit int64
	n.Concurrency = &task.Concurrency{}
	key, most := textMember("key", definition.MaxName, &n.Concurrency.Key), integerMember("limit", 1, maxConcurrency, &limit)
	key.required, most.required = true, true
	err := readObject(location, value, key, most)
	n.Concurrency.Limit = int(limit)
	return err
}

// integerMember is a member that is a whole number in a range.
func integerMember(name string, least, most int64, into *int64) member {
	return member{name: name, read: func(location string, value jsontext.Value) error {
		n, ok := wholeNumber(value, least, most)
		if !ok {
			return invalid(location, "want a whole number from %d to %d", least, most)
		}
		*into = n
		return nil
	}}
}

// lengthMember is a member that is a duration: a number of seconds, or a text.
func lengthMember(name string, into *time.Duration) member {
	return durationMember(name, event.ParseDuration, into)
}

// waitMember is the member wait: how long to wait, which is cut to what the host can.
func waitMember(into *time.Duration) member { return durationMember("wait", event.ParseWait, into) }

func durationMember(name string, parse func(string) (time.Duration, error), into *time.Duration) member {
	return member{name: name, read: func(location string, value jsontext.Value) error {
		length := string(value)
		if value.Kind() != '0' {
			var err error
			if length, err = readText(location, value); err != nil {
				return invalid(location, "want a duration: seconds, or a text such as 200ms, 60s, 5m, 1h2m3s, 7d, PT1M")
			}
		}
		var err error
		if *into, err = parse(length); err != nil {
			return invalid(location, "%v", err)
		}
		return nil
	}}
}

// pauseMember is a lengthMember that is the pause between attempts: where it is 0 there is none, which is not the default.
func pauseMember(name string, into *time.Duration) member {
	m := lengthMember(name, into)
	read := m.read
	m.read = func(location string, value jsontext.Value) error {
		err := read(location, value)
		*into = max(*into, 1) // 0 stands for the default
		return err
	}
	return m
}

// noted returns the member with a call of note when it is there.
func noted(m member, note func()) member {
	read := m.read
	m.read = func(location string, value jsontext.Value) error {
		note()
		return read(location, value)
	}
	return m
}

func newJobSchema() *schema {
	return object("A job for a topic", members{
		"topic": topicSchema(), "properties": object("What the job is given, up to 256 KiB and 100 levels", nil, true),
		"priority":    between("Higher is better; default 0", -maxPriority, maxPriority),
		"run_at":      dateTime("It does not start before this time; default: at once"),
		"retries":     between("Default: what its job or its queue says, or 10; -1 has no end", -1, maxRetries),
		"retry_delay": span("The pause between attempts; default: what its job or its queue says, or 2s"),
		"unique": {Description: "While a job of the topic with this key is unfinished, or its window runs, that job is returned instead of a new one",
			OneOf: []*schema{shortText(""), object("", members{"key": shortText(""), "window": span("The key is held for at least this time from the creation on")}, false, "key")}},
		"fairness_key": shortText("Keys take turns in a round-robin queue; default: the topic"), "concurrency": concurrencySchema(),
		"prefer_instance": shortText("Name of the instance that should run it, if it can: the job is kept for it for 5 s, unless its capacity is used up"),
	}, false, "topic")
}

func topicSchema() *schema {
	topic := textOf("Segments of letters, digits, _ and -", 1, 492)
	topic.Pattern = `^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`
	return topic
}

package api

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Responses to those who add jobs are written by hand, as many as there may be: the properties were checked when they came, and an
// encoder would read them twice more. What lists say of jobs has an encoder, and means the same.

// appendJobs appends jobs that were added, as a list.
func appendJobs(dst []byte, jobs []addedJob) []byte {
	dst = append(dst, '[')
	for i := range jobs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jobs[i].appendMembers(append(dst, '{'))
		if jobs[i].Existing {
			dst = append(dst, `,"existing":true`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// jobs responds with jobs that were added.
func (x *exchange) jobs(jobs []addedJob) {
	b := take()
	defer b.give()
	b.bytes = appendJobs(b.bytes, jobs)
	x.json(http.StatusCreated, b.bytes)
}

// appendMembers appends what is said of a job, without braces.
func (v *jobView) appendMembers(dst []byte) []byte {
	dst = appendQuoted(append(dst, `"id":`...), string(v.ID))
	dst = appendText(dst, `,"topic":`, v.Topic)
	dst = appendQuoted(append(dst, `,"job":`...), v.Job)
	dst = appendQuoted(append(dst, `,"state":`...), string(v.State))
	dst = appendQuoted(append(dst, `,"queue":`...), v.Queue)
	dst = strconv.AppendInt(append(dst, `,"priority":`...), v.Priority, 10)
	dst = appendQuoted(append(dst, `,"created_at":`...), v.CreatedAt)
	dst = appendText(dst, `,"run_at":`, v.RunAt)
	dst = appendText(dst, `,"started_at":`, v.StartedAt)
	dst = appendText(dst, `,"finished_at":`, v.FinishedAt)
	dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(v.Attempt), 10)
	dst = strconv.AppendInt(append(dst, `,"retries":`...), int64(v.Retries), 10)
	dst = appendText(dst, `,"unique":`, v.Unique)
	dst = appendText(dst, `,"fairness_key":`, v.FairnessKey)
	if c := v.Concurrency; c != nil {
		dst = appendQuoted(append(dst, `,"concurrency":{"key":`...), c.Key)
		dst = append(strconv.AppendInt(append(dst, `,"limit":`...), int64(c.Limit), 10), '}')
	}
	dst = appendText(dst, `,"prefer_instance":`, v.PreferInstance)
	dst = appendText(dst, `,"schedule":`, v.Schedule)
	dst = appendText(dst, `,"instance":`, v.Instance)
	dst = appendText(dst, `,"message":`, v.Message)
	dst = appendRaw(dst, `,"output":`, v.Output)
	return appendRaw(dst, `,"properties":`, v.Properties)
}

// appendText appends a member that is left out if it is empty.
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return appendQuoted(append(dst, name...), text)
}

// appendRaw is appendText for what is JSON already.
func appendRaw(dst []byte, name string, value json.RawMessage) []byte {
	if len(value) == 0 {
		return dst
	}
	return append(append(dst, name...), value...)
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// summary is what a run came to; as JSON it serves to compare runs.
type summary struct {
	Plan     plan           `json:"plan"`
	Began    time.Time      `json:"began"`
	Requests int64          `json:"requests"`
	Unknown  int64          `json:"unknown"` // requests whose outcome is not known
	Asked    int            `json:"acknowledged_tasks"`
	Tasks    int            `json:"tasks"`
	Ticks    int            `json:"ticks"`
	Starts   int            `json:"starts"`
	Ends     map[string]int `json:"attempts"` // by outcome
	States   map[string]int `json:"states"`   // of tasks at their end
	Events   int            `json:"events"`
	Streams  int            `json:"stream_events"`
	Kills    [2]int         `json:"kills"`        // of the server, of workers
	False    int            `json:"false_starts"` // of the server
	Away     time.Duration  `json:"away"`         // the server, together
	Store    int64          `json:"store_bytes"`
	Rows     []row          `json:"rows"`
	Trends   []trend        `json:"trends"`
	Late     []lateness     `json:"late"`
	Overlong []lateness     `json:"overlong"`
	Check    string         `json:"check"`
	Trouble  []string       `json:"trouble"`
}

// print prints it for people.
func (s *summary) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nAT\tTASKS/S\tEVENTS/S\tRESIDENT\tHEAP\tGOROUTINES\tCALLS/TASK\tCORES\t")
	for _, r := range s.Rows {
		fmt.Fprintf(t, "%v\t%.1f\t%.1f\t%.1f MiB\t%.1f MiB\t%.0f\t%.1f\t%.2f\t\n", time.Duration(r.At*float64(time.Second)).Round(time.Second),
			r.Tasks, r.Events, r.RSS/(1<<20), r.Live/(1<<20), r.Routines, r.Calls, r.CPU)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\nGROWTH from the second sixth on, at most %+.0f %%\n", 100*s.Plan.Tolerate)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, one := range s.Trends {
		fmt.Fprintf(t, "%s\t%v\t%s\n", one.Name, one, word(!one.Wrong, "GROWS"))
	}
	fmt.Fprintf(t, "\nSTARTED LATE, at most %v beyond what rules, limits and outages explain\nJOB\tSTARTS\tP50\tP99\tMAX\tAT\n", s.Plan.Slack)
	s.printLate(t, s.Late)
	fmt.Fprintf(t, "\nENDED LATE, at most %v beyond the work and the lease\nJOB\tATTEMPTS\tP50\tP99\tMAX\tAT\n", s.Plan.Slack)
	s.printLate(t, slices.DeleteFunc(slices.Clone(s.Overlong), func(one lateness) bool { return one.Max == 0 }))
	_ = t.Flush()
	fmt.Fprintf(w, `
%d requests, %d of unknown outcome; the server was killed %d times, ended %d times while it started, and was away for %v; workers were killed %d times
%d tasks, %d of them ticks of schedules, %d of clients; %d starts; attempts %v; tasks %v
%d events, %d stream events; the store takes %.1f MiB
%s`, s.Requests, s.Unknown, s.Kills[0], s.False, s.Away.Round(time.Millisecond), s.Kills[1],
		s.Tasks, s.Ticks, s.Asked, s.Starts, s.Ends, s.States, s.Events, s.Streams, float64(s.Store)/(1<<20), s.Check)
	const most = 30
	for i, trouble := range s.Trouble {
		if i == most {
			fmt.Fprintf(w, "… and %d more, see the summary\n", len(s.Trouble)-most)
			break
		}
		fmt.Fprintln(w, "WRONG:", trouble)
	}
	if len(s.Trouble) == 0 {
		fmt.Fprintln(w, "Nothing was lost, doubled, invented or late, and nothing grew.")
	}
}

func (s *summary) printLate(t io.Writer, all []lateness) {
	for _, one := range all {
		fmt.Fprintf(t, "%s\t%d\t%v\t%v\t%v\t%v\t%s\n", one.Path, one.Count, one.P50.Round(100*time.Microsecond), one.P99.Round(time.Millisecond),
			one.Max.Round(time.Millisecond), one.At.Sub(s.Began).Round(time.Second), word(one.Max <= s.Plan.Slack, "LATE"))
	}
}

func word(ok bool, otherwise string) string {
	if ok {
		return ""
	}
	return otherwise
}

// save writes the summary as JSON.
func (s *summary) save(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// size returns the bytes of all files below a folder.
func size(dir string) (bytes int64) {
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

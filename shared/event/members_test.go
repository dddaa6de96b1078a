package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string][]string{
		``:                                  nil,
		`"a":1`:                             {`"a"`, `1`},
		`"a":"","":{},"c":[]`:               {`"a"`, `""`, `""`, `{}`, `"c"`, `[]`},
		`"q\",:":"a\\","n":-1.5e3`:          {`"q\",:"`, `"a\\"`, `"n"`, `-1.5e3`},
		`"o":{"a":[1,"}]"],"b":2},"z":null`: {`"o"`, `{"a":[1,"}]"],"b":2}`, `"z"`, `null`},
		`"a":1,"b`:                          {`"a"`, `1`},
		`"a":`:                              {`"a"`, ``},
		`"a":1,`:                            {`"a"`, `1`},
		`"a\`:                               nil,
		`}:]`:                               nil,
	} {
		var got []string
		for name, value := range event.Members([]byte(fields)) {
			got = append(got, string(name), string(value))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
	for name := range event.Members([]byte(`"a":1,"b":2`)) {
		if string(name) != `"a"` {
			t.Error("it goes on after a break")
		}
		break
	}
}

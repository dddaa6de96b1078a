package cron_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/cron"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		expression string
		character  int
		reason     string // a part of it
	}{
		{"", 1, "it is empty"},
		{" \t", 3, "it is empty"},
		{"*", 2, "want 5 fields (classic), or 6 or 7 (Quartz), not 1"},
		{"* * * *", 8, "not 4"},
		{"* * * * * ? * *", 15, "at most 7 fields, not 8"},
		{"* * *\n* *", 10, "not 4"},
		{strings.Repeat("1", 1001), 1, "longer than 1000 bytes"},

		{"60 * * * * ?", 1, "seconds go from 0 to 59"},
		{"0 60 * * * ?", 3, "minutes go from 0 to 59"},
		{"0 0 24 * * ?", 5, "hours go from 0 to 23"},
		{"0 0 0 0 * ?", 7, "days of the month go from 1 to 31"},
		{"0 0 0 32 * ?", 7, "days of the month go from 1 to 31"},
		{"0 0 0 1 0 ?", 9, "months go from 1 to 12"},
		{"0 0 0 1 13 ?", 9, "months go from 1 to 12"},
		{"0 0 0 ? * 0", 11, "days of the week go from 1 to 7"},
		{"0 0 0 ? * 8", 11, "days of the week go from 1 to 7"},
		{"0 0 0 ? * 8L", 11, "days of the week go from 1 to 7"},
		{"0 0 0 ? * 2 1969", 13, "years go from 1970 to 2099"},
		{"0 0 0 ? * 2 2100", 13, "years go from 1970 to 2099"},
		{"0 0 0 ? * 2 2030-2020", 13, "from the earlier to the later"},
		{"0-60 * * * * ?", 3, "seconds go from 0 to 59"},
		{"0,1,99 * * * * ?", 5, "seconds go from 0 to 59"},
		{"99999999999999999999999 * * * * ?", 1, "seconds go from 0 to 59"},

		{"0/0 * * * * ?", 3, "a step of seconds goes from 1 to 59"},
		{"0/60 * * * * ?", 3, "a step of seconds goes from 1 to 59"},
		{"0 0 */24 * * ?", 7, "a step of hours goes from 1 to 23"},
		{"*/ * * * * ?", 3, `want a number for seconds, not the end`},
		{"*/-1 * * * * ?", 3, `not "-"`},
		{"1/2/3 * * * * ?", 4, `"/" is not expected here in seconds`},
		{"1-2-3 * * * * ?", 4, `"-" is not expected here in seconds`},
		{"1- * * * * ?", 3, "not the end"},
		{"-1 * * * * ?", 1, `want a number for seconds, not "-"`},
		{"+1 * * * * ?", 1, `not "+"`},
		{"1.5 * * * * ?", 2, `"." is not expected`},
		{"** * * * * ?", 2, `"*" is not expected`},
		{"*5 * * * * ?", 2, `"5" is not expected`},
		{",1 * * * * ?", 1, "lacks an item"},
		{"1, * * * * ?", 3, "lacks an item"},
		{"1,,2 * * * * ?", 3, "lacks an item"},
		{"é * * * * ?", 1, `not "é"`},
		{"0 é * * * ?", 3, `not "é"`},
		{"é 0 é * * ?", 1, `not "é"`},
		{"\xff * * * * ?", 1, "not"},
		{"L * * * * ?", 1, `not "L"`},
		{"0 0 5L * * ?", 6, `"L" is not expected`},
		{"MON * * * * ?", 1, `want a number for seconds, not "M"`},

		{"0 0 0 * * *", 11, `one of the two day fields must be "?"`},
		{"0 0 0 ? * ?", 11, `one of the two day fields must be "?"`},
		{"0 0 0 1 * 2", 11, `one of the two day fields must be "?"`},
		{"? * * * * ?", 1, `"?"`},
		{"0 0 0 ?,1 * 2", 7, `"?"`},
		{"0 0 0 1,? * ?", 9, `"?"`},
		{"0 0 0 ?/2 * 2", 7, `"?"`},
		{"0 0 0 1 ? ?", 9, `"?"`},

		{"0 0 0 W * ?", 7, `not "W"`},
		{"0 0 0 0W * ?", 7, "go from 1 to 31"},
		{"0 0 0 32W * ?", 7, "go from 1 to 31"},
		{"0 0 0 1-5W * ?", 10, "W goes with a single day"},
		{"0 0 0 5W-7 * ?", 9, "takes neither a range nor a step"},
		{"0 0 0 5W/2 * ?", 9, "takes neither a range nor a step"},
		{"0 0 0 5WW * ?", 9, `"W" is not expected`},
		{"0 0 0 5L * ?", 8, "L goes with a single day of the month, as in"},
		{"0 0 0 L-31 * ?", 9, "from 0 to 30"},
		{"0 0 0 L- * ?", 9, "want a number"},
		{"0 0 0 L-3-4 * ?", 10, "takes neither"},
		{"0 0 0 L-3/2 * ?", 10, "takes neither"},
		{"0 0 0 LWL * ?", 9, `"L" is not expected`},
		{"0 0 0 WL * ?", 7, `not "W"`},
		{"0 0 0 L5 * ?", 8, `"5" is not expected`},
		{"0 0 0 MON * ?", 7, `not "M"`},
		{"0 0 0 1#2 * ?", 8, `"#" is not expected`},

		{"0 0 0 ? * 2#0", 13, "a first to a fifth"},
		{"0 0 0 ? * 2#6", 13, "a first to a fifth"},
		{"0 0 0 ? * 2#", 13, "want a number"},
		{"0 0 0 ? * #2", 11, `not "#"`},
		{"0 0 0 ? * 2-4#2", 14, "# goes with a single day"},
		{"0 0 0 ? * 2-4L", 14, "L goes with a single day"},
		{"0 0 0 ? * 2#1/2", 14, "takes neither"},
		{"0 0 0 ? * 2L-3", 13, "takes neither"},
		{"0 0 0 ? * L-3", 12, "takes neither"},
		{"0 0 0 ? * 2W", 12, `"W" is not expected`},
		{"0 0 0 ? * MONDAY", 11, "named SUN to SAT"},
		{"0 0 0 ? * MO", 11, "named SUN to SAT"},
		{"0 0 0 ? * UNM", 11, "named SUN to SAT"},
		{"0 0 0 ? * JAN", 11, "named SUN to SAT"},
		{"0 0 0 1 JANUARY ?", 9, "named JAN to DEC"},
		{"0 0 0 1 MON ?", 9, "named JAN to DEC"},
		{"0 0 0 1 JANL ?", 9, "named JAN to DEC"},
		{"0 0 0 1 JAN-FOO ?", 13, "named JAN to DEC"},

		{"60 * * * *", 1, "minutes go from 0 to 59"},
		{"* * * * 8", 9, "days of the week go from 0 to 7"},
		{"* * L * *", 5, "L belongs to Quartz"},
		{"* * 15W * *", 7, "W belongs to Quartz"},
		{"* * * * 5#2", 10, "# belongs to Quartz"},
		{"* * * * 5L", 10, "L belongs to Quartz"},
		{"TZ=Europe/Berlin * * * * *", 1, "the time zone is given apart"},
		{"CRON_TZ=UTC 0 0 * * *", 1, "the time zone is given apart"},

		{"@", 1, "want @yearly"},
		{"@reboot", 1, "want @yearly"},
		{"@daily 5", 8, "nothing may follow @daily"},
		{"@every", 7, "@every needs a length of time"},
		{"@every 1h 30m", 11, "without spaces"},
		{"@every 0s", 8, "at least a second"},
		{"@every -5s", 8, `not "-"`},
		{"@every 500ms", 12, "want whole seconds"},
		{"@every 1.5h", 9, "in the units"},
		{"@every 5m1h", 11, "in the units"},
		{"@every 5m5m", 11, "in the units"},
		{"@every 1h30", 12, "in the units"},
		{"@every h", 8, "want a number"},
		{"@every 99999999999999999999d", 8, "less than 130 years"},
		{"@every 47482d", 8, "less than 130 years"},
		{"@every PT1M", 8, `not "P"`},
	} {
		t.Run(test.expression, func(t *testing.T) {
			t.Parallel()
			x, err := cron.Parse(test.expression)
			var refused *cron.Error
			if !errors.As(err, &refused) {
				t.Fatalf("Parse(%q) = %v, %v, want an Error", test.expression, x, err)
			}
			if refused.Character() != test.character || !strings.Contains(refused.Reason, test.reason) {
				t.Errorf("Parse(%q) = character %d: %s; want character %d: %s",
					test.expression, refused.Character(), refused.Reason, test.character, test.reason)
			}
		})
	}
}

package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/store"
)

// An exchange that is too large to be stored is refused before anything is done; one with as many leases as it may tell of is not.
func TestBoundsOfExchanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		r := exchanging(t, s)
		w := r.register(t, "/topics/a/*")
		r.fill(t, 1)
		token := r.exchange(t, w, `{"seq":1,"max":1}`).Claims[0].Token
		list := func(n int, format string, token string) string {
			all := make([]string, n)
			for i := range all {
				all[i] = fmt.Sprintf(format, fmt.Sprintf("%04d", i)+token)
			}
			return "[" + strings.Join(all, ",") + "]"
		}
		result, beat := `{"token":"%s","result":"ok"}`, `{"token":"%s"}`
		mine := fmt.Sprintf(result, token)
		lines := `{"token":"` + token + `","logs":[` + strings.Repeat(`{"message":"m"},`, 500) + `{"message":"m"}]}`
		for body, at := range map[string]string{
			`{"seq":2,"results":[` + mine + `,` + list(999, result, strings.Repeat("ä", 250))[1:] + `}`:     "body.results[278].token",
			`{"seq":2,"beats":` + list(1000, beat, strings.Repeat(`\u0001`, 100)) + `}`:                     "body.beats[231].token",
			`{"seq":2,"results":[` + mine + `],"beats":` + list(1000, beat, strings.Repeat("t", 196)) + `}`: "body.beats[699].token",
		} {
			wantProblem(t, r.as(t, access.Worker, "POST", w+"/exchange", body), 413, api.CodeTooLarge, at)
		}
		body := `{"seq":2,"results":[` + mine + `],"beats":[` + lines + `,{"token":"x"},` + lines + `]}`
		wantProblem(t, r.as(t, access.Worker, "POST", w+"/exchange", body), 400, api.CodeInvalid, "body.beats[2].logs")
		for seq := 2; seq < 8; seq++ { // as many tokens as there may be, of their usual length
			body := fmt.Sprintf(`{"seq":%d,"results":%s,"beats":%s}`, seq, list(1000, result, strings.Repeat("t", 60)), list(1000, beat, strings.Repeat("u", 60)))
			if got := r.exchange(t, w, body); len(got.Results) != 1000 || len(got.Stops) != 1000 {
				t.Fatalf("%d results and %d stops", len(got.Results), len(got.Stops))
			}
		}
		if got := r.exchange(t, w, `{"seq":9,"results":[`+mine+`]}`); got.Results[0].State != "SUCCEEDED" {
			t.Errorf("results = %+v", got.Results)
		}
	})
}

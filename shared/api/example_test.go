package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

func ExampleNew() {
	journal := newFake() // in production, a journal.Journal
	handler := api.New(
		api.Options{Tokens: []access.Token{access.NewToken("ci", access.Operator, "secret")}},
		api.Emit(journal), api.Events(journal), api.Objects(journal), api.Operations(api.Probes{}),
	)
	server := httptest.NewServer(handler)
	defer server.Close()

	call := func(method, path, body string) {
		r, _ := http.NewRequest(method, server.URL+"/jobscheduler/master/api/"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Content-Type", "application/json")
		answer, err := server.Client().Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, string(text))
	}
	call("POST", "event", `[{"TYPE":"DoorOpened","key":"/house/front"}]`)
	call("GET", "object/house/?return=DoorOpened&after=0", "")
	// Output:
	// 201 {"eventIds":[1478257655827000]}
	// 200 {"TYPE":"NonEmpty","eventId":1478257656827000,"eventSnapshots":[{"eventId":1478257655827000,"key":"/house/front","TYPE":"DoorOpened"}]}
}

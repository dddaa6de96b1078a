package samples

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// Replay invokes the function that wire makes with each of its samples, as Lambda would, over a journal that holds a few
// events already. It fails where a case has no file or a file has no case.
func Replay(t *testing.T, function string, wire func(*service.Service) host.Function) {
	t.Helper()
	invoke(t, function, wire(fresh(t)))
}

// ReplayTasks does the same for a function that has to do with tasks.
func ReplayTasks(t *testing.T, function string, wire func(context.Context, *service.Tasks) (host.Function, error)) {
	t.Helper()
	f, err := wire(t.Context(), service.NewTasks(fresh(t), local.New()))
	if err != nil {
		t.Fatal(err)
	}
	invoke(t, function, f)
}

// fresh returns a service over what the samples of emit would have left.
func fresh(t *testing.T) *service.Service {
	t.Helper()
	s := memory.New(memory.Options{})
	if err := Declare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	seed(t, s)
	place := host.PlaceOf(func(name string) string { return map[string]string{"AWS_LAMBDA_RUNTIME_API": "test"}[name] })
	return service.New(place, config.Settings{Tokens: Tokens()}, s, slog.New(slog.DiscardHandler))
}

func invoke(t *testing.T, function string, f host.Function) {
	t.Helper()
	checkFiles(t, function)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	invoker, err := host.NewInvoker(f)
	if err != nil {
		t.Fatalf("NewInvoker() = %v", err)
	}
	for _, c := range Of(function) {
		t.Run(c.Name, func(t *testing.T) {
			answer, err := invoker.Invoke(t.Context(), Payload(t, function, c.Name))
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			if err := c.Check(answer, failure); err != nil {
				t.Error(err)
			}
		})
	}
}

// Path returns the file of a sample.
func Path(function, name string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "events", function, name+".json")
}

// Payload reads the file of a sample.
func Payload(t testing.TB, function, name string) []byte {
	t.Helper()
	payload, err := os.ReadFile(Path(function, name))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// checkFiles demands a case for each file; Payload demands a file for each case.
func checkFiles(t *testing.T, function string) {
	t.Helper()
	files, err := filepath.Glob(Path(function, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if !slices.ContainsFunc(Of(function), func(c Case) bool { return c.Name == name }) {
			t.Errorf("%s: no case says what it is answered with", file)
		}
	}
}

// seed emits what the samples of emit would have left.
func seed(t *testing.T, s store.Store) {
	t.Helper()
	j := journal.Open(s, journal.Options{})
	defer func() { _ = j.Close() }()
	before := []event.Event{
		{Type: "VariablesCustomEvent", Key: event.Key{Path: "/orders/1"}, Fields: []byte(`"variables":{"state":"paid"}`)},
		{Type: "OfferMade", Key: event.Key{Path: "/offers/1"}, Fields: []byte(`"price":12.5`)},
		{Type: "OfferMade", Key: event.Key{Path: "/offers/2"}, Fields: []byte(`"price":8`)},
		{Type: "OfferRemoved", Key: event.Key{Path: "/offers/1"}},
		{Type: "OfferMade", Key: event.Key{Path: "/offers/ü"}, Fields: []byte(`"price":3`)},
	}
	if _, err := j.Emit(t.Context(), before, nil); err != nil {
		t.Fatalf("Emit() = %v", err)
	}
}

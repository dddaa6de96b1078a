package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/notifier"
)

func TestOpenNotifier(t *testing.T) {
	t.Parallel()
	var opened []string
	opener := func(scheme string) func(context.Context, string) (notifier.Line, error) {
		return func(_ context.Context, place string) (notifier.Line, error) {
			opened = append(opened, scheme+" at "+place)
			return nil, nil
		}
	}
	openers := config.Notifiers{"local": opener("local"), "sqs": opener("sqs")}
	for _, url := range []string{"", "local", "local:", "sqs:https://sqs.example.com/1/q"} {
		if _, err := config.OpenNotifier(t.Context(), url, openers); err != nil {
			t.Errorf("OpenNotifier(%q) = %v, want nil", url, err)
		}
	}
	want := []string{"local at ", "local at ", "local at ", "sqs at https://sqs.example.com/1/q"}
	if diff := cmp.Diff(want, opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestOpenNotifierRefuses(t *testing.T) {
	t.Parallel()
	openers := config.Notifiers{"sqs": func(context.Context, string) (notifier.Line, error) { return nil, notifier.ErrUnavailable }}
	for url, want := range map[string]string{
		"":       "MILLRACE_BELL is not set, want sqs:QUEUE",
		"drum:a": `"drum:a", and this program opens sqs:QUEUE`,
		"sqs:a":  "open the notifier sqs:a",
	} {
		if _, err := config.OpenNotifier(t.Context(), url, openers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenNotifier(%q) = %v, want an error with %q", url, err, want)
		}
	}
	if _, err := config.OpenNotifier(t.Context(), "sqs:a", openers); !errors.Is(err, notifier.ErrUnavailable) {
		t.Errorf("OpenNotifier(sqs:a) = %v, want %v", err, notifier.ErrUnavailable)
	}
}

package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/config"
)

func TestOpenBell(t *testing.T) {
	t.Parallel()
	var opened []string
	opener := func(scheme string) func(context.Context, string) (bell.Line, error) {
		return func(_ context.Context, place string) (bell.Line, error) {
			opened = append(opened, scheme+" at "+place)
			return nil, nil
		}
	}
	openers := config.Bells{"local": opener("local"), "sqs": opener("sqs")}
	for _, url := range []string{"", "local", "local:", "sqs:https://sqs.example.com/1/q"} {
		if _, err := config.OpenBell(t.Context(), url, openers); err != nil {
			t.Errorf("OpenBell(%q) = %v, want nil", url, err)
		}
	}
	want := []string{"local at ", "local at ", "local at ", "sqs at https://sqs.example.com/1/q"}
	if diff := cmp.Diff(want, opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestOpenBellRefuses(t *testing.T) {
	t.Parallel()
	openers := config.Bells{"sqs": func(context.Context, string) (bell.Line, error) { return nil, bell.ErrUnavailable }}
	for url, want := range map[string]string{
		"":       "MILLRACE_BELL is not set, want sqs:QUEUE",
		"drum:a": `"drum:a", and this program opens sqs:QUEUE`,
		"sqs:a":  "open the bell sqs:a",
	} {
		if _, err := config.OpenBell(t.Context(), url, openers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenBell(%q) = %v, want an error with %q", url, err, want)
		}
	}
	if _, err := config.OpenBell(t.Context(), "sqs:a", openers); !errors.Is(err, bell.ErrUnavailable) {
		t.Errorf("OpenBell(sqs:a) = %v, want %v", err, bell.ErrUnavailable)
	}
}

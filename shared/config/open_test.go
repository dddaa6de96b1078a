package config_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/store"
)

func TestOpenStore(t *testing.T) {
	t.Parallel()
	var places []string
	openers := config.Openers{"dynamodb": func(_ context.Context, place string) (store.Store, error) {
		places = append(places, place)
		return nil, nil
	}}
	if _, err := config.OpenStore(t.Context(), "dynamodb:a:b", openers); err != nil || len(places) != 1 || places[0] != "a:b" {
		t.Errorf("OpenStore(dynamodb:a:b) opened %q, %v", places, err)
	}
	for url, want := range map[string]string{
		"":            "no store is given, want dynamodb:PREFIX",
		"pebble:data": `the store "pebble:data": this program opens dynamodb:PREFIX`,
		"dynamodb":    "names no place",
		"dynamodb:":   "names no place",
	} {
		if _, err := config.OpenStore(t.Context(), url, openers); !isMistake(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("OpenStore(%q) = %v, want a mistake with %q", url, err, want)
		}
	}
}

func isMistake(err error) bool {
	_, is := errors.AsType[*config.Mistake](err)
	return is
}

func TestOpenStoreFails(t *testing.T) {
	t.Parallel()
	openers := config.Openers{"pebble": func(context.Context, string) (store.Store, error) { return nil, store.ErrLocked }}
	if _, err := config.OpenStore(t.Context(), "pebble:data", openers); !errors.Is(err, store.ErrLocked) {
		t.Errorf("OpenStore(locked) = %v, want %v", err, store.ErrLocked)
	}
}

func TestLoggerWritesJSONWhereNobodyWatches(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := config.Logger(&out, slog.LevelWarn)
	log.Info("unheard")
	log.Warn("heard", "key", 1)
	if got := out.String(); !strings.HasPrefix(got, "{") || strings.Contains(got, "unheard") || !strings.Contains(got, `"key":1`) {
		t.Errorf("logged %q, want one line of JSON", got)
	}
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	if _, text := config.Logger(device, slog.LevelInfo).Handler().(*slog.TextHandler); !text {
		t.Error("a character device is not given text")
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pebble:/a b":                  "pebble:/a b",
		"dynamodb:p":                   "dynamodb:p",
		"postgres://u:secret@h/d?a=b":  "postgres://u:xxxxx@h/d?a=b",
		"postgres://u:secret@h:port/d": "postgres:…",
	} {
		if got := config.Redacted(text); got != want {
			t.Errorf("Redacted(%s) = %s, want %s", text, got, want)
		}
	}
}

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/access"
)

// TestSecretsChange: what MILLRACE_SECRETS names may change while the process runs, and a minute later that holds. Until it is valid,
// what was read before does. There is room for many tokens.
func TestSecretsChange(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const one, two = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
	synctest.Test(t, func(t *testing.T) {
		write(`{"tokens":[{"name":"old","role":"viewer","sha256":"` + digest(1) + `"}],"signing_secret":"` + one + `"}`)
		settings, err := load(t, env{"MILLRACE_SECRETS": "file:" + file, "MILLRACE_ADMIN_TOKEN": "secret"})
		if err != nil {
			t.Fatal(err)
		}
		check := func(signing string, names ...string) {
			t.Helper()
			if got := strings.Join(namesOf(settings.Accepted()), " "); got != strings.Join(names, " ") || settings.Secrets.Signing() != signing {
				t.Errorf("tokens %s, signed by %s; want %v and %s", got, settings.Secrets.Signing(), names, signing)
			}
		}
		check(one, "admin", "old")

		many := make([]string, 200)
		for i := range many {
			many[i] = `{"name":"n` + fmt.Sprint(i) + `","role":"producer","sha256":"` + digest(i) + `"}`
		}
		write(`{"tokens":[` + strings.Join(many, ",") + `],"signing_secret":"` + two + `"}`)
		check(one, "admin", "old")
		time.Sleep(time.Minute)
		if got := settings.Accepted(); len(got) != 201 || settings.Secrets.Signing() != two {
			t.Errorf("%d tokens, want 201, and the new signing secret", len(got))
		}

		for _, bad := range []string{`{"tokens":[{"name":"x"}]}`, `{"signing_secret":"abc"}`, `{"other":1}`,
			`{"tokens":[{"name":"admin","role":"admin","sha256":"` + digest(1) + `"}]}`} {
			write(bad)
			time.Sleep(time.Minute)
			if got := settings.Accepted(); len(got) != 201 {
				t.Errorf("%s: %d tokens, want those before", bad, len(got))
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := settings.Accepted(); len(got) != 201 {
			t.Errorf("without the file: %d tokens, want those before", len(got))
		}
		write(`{"signing_secret": "", tokens: [{name: new, role: admin, sha256: ` + digest(3) + `}]}`)
		time.Sleep(time.Minute)
		check("", "admin", "new")
	})
}

// TestSecretsAreNeeded: a start fails where the secrets cannot be read or are not valid.
func TestSecretsAreNeeded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	for _, c := range []struct{ at, text, want string }{
		{"file:" + file, `{}`, "there is no token"},
		{"file:" + file, `{"tokens":[{"name":"a","role":"boss","sha256":"` + digest(1) + `"}]}`, "MILLRACE_SECRETS:1: tokens[0].role"},
		{"file:" + file, `{"signing_secret":"x"}`, "signing_secret: access: a signing secret is whsec_"},
		{"file:" + file + "2", ``, "no such file"},
		{"vault:x", ``, "want file:PATH, or aws:ARN"},
		{"aws:millrace", ``, "is not the ARN of a secret"},
	} {
		synctest.Test(t, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := load(t, env{"MILLRACE_SECRETS": c.at}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s: %v, want %q", c.at, c.text, err, c.want)
			}
		})
	}
}

func digest(n int) string { return fmt.Sprintf("%064x", n) }

func namesOf(tokens []access.Token) (names []string) {
	for _, token := range tokens {
		names = append(names, token.Name)
	}
	return names
}

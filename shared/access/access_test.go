package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
)

func TestParseRole(t *testing.T) {
	t.Parallel()
	for _, role := range []access.Role{access.Viewer, access.Producer, access.Consumer, access.Worker, access.Operator, access.Admin} {
		if got, err := access.ParseRole(string(role)); got != role || err != nil {
			t.Errorf("ParseRole(%s) = %q, %v", role, got, err)
		}
	}
	for _, bad := range []string{"root", "", "Admin"} {
		if got, err := access.ParseRole(bad); err == nil || got != "" {
			t.Errorf("ParseRole(%q) = %q, %v, want an error", bad, got, err)
		}
	}
}

func TestParseHash(t *testing.T) {
	t.Parallel()
	hash := sha256.Sum256([]byte("s"))
	text := hex.EncodeToString(hash[:])
	sum, err := access.ParseHash(text)
	if want := access.NewToken("", access.Viewer, "s").SHA256; sum != want || err != nil {
		t.Errorf("ParseHash = %x, %v, want %x", sum, err, want)
	}
	for _, bad := range []string{"", "abc", strings.Repeat("z", 64), text + "00"} {
		if _, err := access.ParseHash(bad); err == nil {
			t.Errorf("ParseHash(%q) is no error", bad)
		}
	}
}

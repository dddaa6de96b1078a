package postgres

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// ServerName is the name in the certificate of an instance that is encrypted, besides the address 127.0.0.1.
const ServerName = "database.test"

// Certified is the user that an encrypted instance asks for a certificate.
const Certified = "certified"

// who says who may connect to an encrypted instance, and how.
const who = "local all millrace trust\nhostssl all millrace 127.0.0.1/32 trust\nhostssl all " + Certified + " 127.0.0.1/32 cert\n"

// OwnEncrypted is as [Own], of an instance that also takes connections at 127.0.0.1, over TLS only, with a certificate of the authority.
// The user [Certified] takes one of the same authority.
func OwnEncrypted(t testing.TB, by *Authority) *Instance {
	t.Helper()
	i := Own(t)
	if err := i.Execute("CREATE ROLE " + Certified + " SUPERUSER LOGIN"); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	i.Certify(t, by)
	keep(t, filepath.Join(i.data(), "pg_hba.conf"), []byte(who), 0o600)
	i.settings = []string{"listen_addresses=127.0.0.1", "ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key", "ssl_ca_file=authority.pem"}
	i.Crash()
	if err := i.startAtFreePort(); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	return i
}

// Certify gives the instance a certificate of the authority, which it uses once it has read its settings again.
func (i *Instance) Certify(t testing.TB, by *Authority) {
	t.Helper()
	certificate, key := by.Issue(t, ServerName, net.IPv4(127, 0, 0, 1))
	for to, from := range map[string]string{"server.pem": certificate, "server.key": key, "authority.pem": by.File} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(i.data(), to)
		keep(t, file, text, 0o600)
		if err := give(file); err != nil {
			t.Fatal(err)
		}
	}
}

// startAtFreePort starts the instance at a port that nobody has. Somebody may take it meanwhile, and then it is tried again.
func (i *Instance) startAtFreePort() (err error) {
	for range 5 {
		if i.port, err = freePort(); err != nil {
			return err
		}
		if err = i.Start(); err == nil {
			return nil
		}
	}
	return err
}

func freePort() (port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	return port, err
}

// EncryptedURL returns the URL of the first database of an encrypted instance by way of a host, which must prove by a certificate of the
// authority in the file that it is that host.
func (i *Instance) EncryptedURL(user, host, authority string) string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=verify-full&sslrootcert=%s", user, net.JoinHostPort(host, i.port), url.QueryEscape(authority))
}

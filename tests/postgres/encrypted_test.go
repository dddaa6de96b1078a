package postgres_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/client"
	pgnotifier "github.com/millrace/millrace/shared/notifier/postgres"
	"github.com/millrace/millrace/tests/postgres"
)

const address = "127.0.0.1"

// A server that demands a verified certificate works, by encrypted connections only: those of the store, and those that listen and notify.
func TestServerOverTLS(t *testing.T) {
	t.Parallel()
	authority := postgres.NewAuthority(t)
	own := postgres.OwnEncrypted(t, authority)
	url := own.EncryptedURL("millrace", address, authority.File)
	makeTables(t, url)
	c := serve(t, url).Dial(t)
	seen := observe(t, c)
	work(t, c)
	runs(t, c, seen, 20)
	db, err := pgx.Connect(t.Context(), own.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	eventually(t, "each of its connections is encrypted, and two of them listen", func() bool {
		var plain, listen int
		err := db.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE NOT ssl), count(*) FILTER (WHERE query LIKE 'LISTEN%')
			FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&plain, &listen)
		return err == nil && plain == 0 && listen == 2
	})
}

// runs adds jobs, and returns when the follower has seen their ends.
func runs(t *testing.T, c *client.Client, seen *observer, n int) {
	t.Helper()
	news := make([]client.NewJob, n)
	for i := range news {
		news[i].Topic = "w"
	}
	added, err := c.AddJobs(t.Context(), news)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, job := range added {
		ids = append(ids, job.ID)
	}
	eventually(t, "the jobs have ended", func() bool { return seen.saw(ids, nil) })
}

// A database that does not prove who it is, or that is not content with who asks, is refused, and the program says what it was.
func TestRefusesWhatIsNotVerified(t *testing.T) {
	t.Parallel()
	authority, another := postgres.NewAuthority(t), postgres.NewAuthority(t)
	own := postgres.OwnEncrypted(t, authority)
	asCertified := own.EncryptedURL(postgres.Certified, address, authority.File)
	certificate, key := another.Issue(t, postgres.Certified)
	other, otherKey := authority.Issue(t, "other")
	for url, want := range map[string]string{
		own.EncryptedURL("millrace", address, another.File):                                                 "certificate signed by unknown authority",
		own.EncryptedURL("millrace", "localhost", authority.File):                                           "certificate is valid for " + postgres.ServerName + ", not localhost",
		own.EncryptedURL("millrace", address, t.TempDir()+"/none"):                                          "unable to read CA file",
		strings.Replace(own.EncryptedURL("millrace", address, authority.File), "verify-full", "disable", 1): "no encryption",
		asCertified:                              "connection requires a valid client certificate",
		certified(asCertified, certificate, key): "connection requires a valid client certificate",
		certified(asCertified, other, otherKey):  "certificate authentication failed for user",
	} {
		if out, err := command(t, "tables", "--store", url); err == nil || !strings.Contains(out, want) {
			t.Errorf("millrace tables on %s: %v, %s, want that it says %q", url, err, out, want)
		}
	}
}

// certified adds a certificate of the client to a URL.
func certified(address, certificate, key string) string {
	return address + "&sslcert=" + url.QueryEscape(certificate) + "&sslkey=" + url.QueryEscape(key)
}

// A certificate stands for a password: the store and the notifier connect by it.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	authority := postgres.NewAuthority(t)
	own := postgres.OwnEncrypted(t, authority)
	certificate, key := authority.Issue(t, postgres.Certified)
	url := certified(own.EncryptedURL(postgres.Certified, address, authority.File), certificate, key)
	makeTables(t, url)
	if err := openStore(t, url).Ping(t.Context()); err != nil {
		t.Errorf("the store: %v", err)
	}
	n, err := pgnotifier.Open(t.Context(), pgnotifier.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.Ping(t.Context()); err != nil {
		t.Errorf("the notifier: %v", err)
	}
}

// The file of the authority is read for each connection: a server goes on once it holds the one that has signed the database's new
// certificate, without a restart. Until then /readyz says that the store cannot be used.
func TestAuthorityIsReplaced(t *testing.T) {
	t.Parallel()
	old, renewed := postgres.NewAuthority(t), postgres.NewAuthority(t)
	own := postgres.OwnEncrypted(t, old)
	url := own.EncryptedURL("millrace", address, old.File)
	makeTables(t, url)
	s := serve(t, url)
	impatient, err := s.Client(client.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	ready := func() error {
		_, _, err := impatient.Get(t.Context(), "/readyz")
		return err
	}
	own.Certify(t, renewed)
	if err := own.Execute("SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "/readyz says that it cannot use the store", func() bool {
		if err := own.DropConnections(); err != nil { // until there is none that was made before the settings were read
			t.Fatal(err)
		}
		err := ready()
		return client.StatusOf(err) == 503 && strings.Contains(err.Error(), "the store cannot be used")
	})
	if err := openStore(t, url).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("Ping = %v, want that the authority is unknown", err)
	}
	text, err := os.ReadFile(renewed.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old.File, text, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready again", func() bool { return ready() == nil })
}

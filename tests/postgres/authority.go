package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates.
type Authority struct {
	File string // its own certificate

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority, with its certificate in a file that is removed when the test ends.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "authority.pem")}
	a.certificate = template("authority " + rand.Text()) // two of one name would be taken for one whose key is wrong
	a.certificate.IsCA, a.certificate.BasicConstraintsValid, a.certificate.KeyUsage = true, true, x509.KeyUsageCertSign
	certificate, _, key := sign(t, a.certificate, a)
	a.key = key
	keep(t, a.File, certificate, 0o644)
	return a
}

// Issue returns files with a certificate and its key: that of a user of the name, or of a server with the names and addresses.
func (a *Authority) Issue(t testing.TB, name string, addresses ...net.IP) (certificate, key string) {
	t.Helper()
	c := template(name)
	c.DNSNames, c.IPAddresses = []string{name}, addresses
	signed, secret, _ := sign(t, c, a)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "certificate.pem"), filepath.Join(dir, "key.pem")
	keep(t, certificate, signed, 0o644)
	keep(t, key, secret, 0o600)
	return certificate, key
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
	}
}

// sign signs a certificate by the authority, or by its own key where the authority has none yet.
func sign(t testing.TB, c *x509.Certificate, by *Authority) (certificate, secret []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := by.key
	if signer == nil {
		signer = key
	}
	signed, err := x509.CreateCertificate(rand.Reader, c, by.certificate, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	coded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: coded}), key
}

func keep(t testing.TB, file string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, text, mode); err != nil {
		t.Fatal(err)
	}
}

package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/store"
)

// cookieName is the cookie that names a session.
const cookieName = "millrace_session"

// sessionAge is how long a session lasts.
const sessionAge = 12 * time.Hour

// sessions are who is signed in. A session is an item of the store under the hash of its cookie, so that it outlives a restart, is
// known to every process, and cannot be taken over by who reads the store. It names the token's hash: what the token may do is looked
// up at each request, and a session ends with its token.
type sessions struct {
	store  store.Store
	tokens func() []access.Token
	now    func() time.Time
}

// session is what is stored.
type session struct {
	Token string    `json:"token"` // hexadecimal SHA-256 of the token's secret
	Until time.Time `json:"until"`
}

func sessionKey(cookie string) store.Key {
	sum := sha256.Sum256([]byte(cookie))
	return store.Key{Table: store.Work, Partition: "session/" + hex.EncodeToString(sum[:]), Sort: "session"}
}

// tokenWith returns the token whose secret has that hash, nil if there is none.
func (s *sessions) tokenWith(sum [32]byte) *access.Token {
	all := s.tokens()
	for i := range all {
		if all[i].SHA256 == sum { // of a hash, so that the time taken tells nothing of a secret
			return &all[i]
		}
	}
	return nil
}

// of returns the token that the request's session is of; nil: there is no session, or it is over, or its token is not known any more.
func (s *sessions) of(r *http.Request) (*access.Token, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // no cookie is no session
	}
	items, err := s.store.Get(r.Context(), sessionKey(cookie.Value))
	if err != nil || items[0] == nil {
		return nil, err
	}
	var stored session
	if err := json.Unmarshal(items[0].Value, &stored); err != nil {
		return nil, fmt.Errorf("web: session: %w", err)
	}
	sum, err := access.ParseHash(stored.Token)
	if err != nil || !s.now().Before(stored.Until) {
		return nil, err
	}
	return s.tokenWith(sum), nil
}

// begin stores a session of the token and gives its cookie to the browser.
func (s *sessions) begin(w http.ResponseWriter, r *http.Request, token *access.Token) error {
	name, until := rand.Text(), s.now().Add(sessionAge)
	value, err := json.Marshal(session{Token: hex.EncodeToString(token.SHA256[:]), Until: until})
	if err != nil {
		return err
	}
	item := store.Item{Key: sessionKey(name), Version: 1, Value: value, Expires: until}
	if err := s.store.Write(r.Context(), store.Write{Token: rand.Text(), Ops: []store.Op{store.Put(item, store.Absent)}}); err != nil {
		return err
	}
	http.SetCookie(w, cookie(r, name, int(sessionAge/time.Second)))
	return nil
}

// end removes the request's session, here and in the browser.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) error {
	if c, err := r.Cookie(cookieName); err == nil {
		remove := store.Delete(sessionKey(c.Value), store.Always)
		if err := s.store.Write(r.Context(), store.Write{Token: rand.Text(), Ops: []store.Op{remove}}); err != nil {
			return err
		}
	}
	http.SetCookie(w, cookie(r, "", -1))
	return nil
}

// cookie returns the session's cookie. It is for encrypted connections only where this is one, or a proxy says that it was.
func cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	asked, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // the browser's own connection comes first
	return &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(strings.TrimSpace(asked), "https"),
	}
}

package account_test

import (
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// endToEnd are the tests of tests/e2e that need no process of their own.
var endToEnd = []string{
	"TestOrdersAreFollowed", "TestCreationsHappenOnce", "TestLists", "TestProducersRaceForAStream", "TestStreamCommands", "TestApply",
	"TestCommands", "TestExitStatus", "TestManyEmitters",
}

// TestEndToEnd runs the tests of the program against the gateway of a stack: what a server does in one process, the functions do together.
func TestEndToEnd(t *testing.T) {
	a := open(t)
	const token = "e2e-token"
	s := a.deploy(t, "e2e", fmt.Sprintf("AdminTokenSha256=%x", sha256.Sum256([]byte(token))))
	gateway := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(a.endpoint)
		r.Out.Host = s.host
	}})
	defer gateway.Close()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-parallel=1", "-run", "^("+strings.Join(endToEnd, "|")+")$", "../e2e")
	cmd.Env = append(os.Environ(), "MILLRACE_TEST_DEPLOYMENT="+gateway.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, test := range endToEnd {
		if !strings.Contains(string(out), "--- PASS: "+test+" ") {
			t.Errorf("%s did not pass\n%s", test, out)
		}
	}
}

package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCommand_OnlyNamedFoldersAndVariablesAreGiven(t *testing.T) {
	box := Sandbox{
		Writable: []string{"/srv/out"}, Readable: []string{"/srv/in"}, Folder: "/srv/out", Environment: []string{"A=b=c", "EMPTY="},
	}
	words := box.Command()
	text := strings.Join(words, " ")
	for _, want := range []string{
		"--unshare-all", "--die-with-parent", "--cap-drop ALL", "--clearenv", "--bind /srv/out /srv/out", "--ro-bind /srv/in /srv/in",
		"--setenv A b=c", "--setenv EMPTY ", "--chdir /srv/out",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for _, unwanted := range []string{"--share-net", "/etc/resolv.conf", "/root", "/home", "/run", "/etc/shadow", "--dev-bind"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q in %s", unwanted, text)
		}
	}
	writable := 0
	for i, word := range words {
		if word == "--bind" {
			if writable++; words[i+1] != "/srv/out" {
				t.Errorf("%s is writable", words[i+1])
			}
		}
	}
	if writable != 1 || words[len(words)-1] != "--" {
		t.Errorf("%d folders are writable; the words end with %q", writable, words[len(words)-1])
	}
	box.Network = true
	if !slices.Contains(box.Command(), "--share-net") {
		t.Error("no network on request")
	}
}

func TestRun_CommandSeesItsFoldersAndNothingOfTheUser(t *testing.T) {
	if err := Check(t.Context()); err != nil {
		t.Skip(err)
	}
	given, private := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(private, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ASSAY_TEST_TOKEN", "secret")
	box := Sandbox{Writable: []string{given}, Folder: given, Environment: []string{"GIVEN=yes"}}
	var log bytes.Buffer
	script := `echo "$GIVEN" > result; env; cat ` + private + ` 2>&1 || true; ls /proc | grep -c '^[0-9]'; touch /usr/x 2>&1 || true`
	if err := box.Run(t.Context(), script, time.Minute, &log, 1<<16); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if got, err := os.ReadFile(filepath.Join(given, "result")); err != nil || string(got) != "yes\n" {
		t.Errorf("%q, %v", got, err)
	}
	if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "ASSAY_TEST_TOKEN") {
		t.Errorf("the command saw a secret:\n%s", log.String())
	}
	if _, err := os.Stat("/usr/x"); err == nil {
		t.Error("the command wrote to the system")
	}
}

func TestRun_TimeAndOutputAreBounded(t *testing.T) {
	if err := Check(t.Context()); err != nil {
		t.Skip(err)
	}
	var log bytes.Buffer
	err := (&Sandbox{}).Run(t.Context(), "sleep 1000 & sleep 1000", time.Second, &log, 1<<10)
	if err == nil || !strings.Contains(err.Error(), "longer than 1s") {
		t.Errorf("it ended with %v", err)
	}
	if err := (&Sandbox{}).Run(t.Context(), "head -c 1000000 /dev/zero", time.Minute, &log, 1<<10); err != nil || log.Len() != 1<<10 {
		t.Errorf("%d bytes of output, %v", log.Len(), err)
	}
}

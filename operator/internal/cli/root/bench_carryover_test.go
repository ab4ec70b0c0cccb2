package root

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that drops the page cache of the file it reads makes the next trial slow, whichever arm that is. In use it follows itself, so
// it is slower, and a copy of the baseline beside it is not faster.
func TestBench_CommandThatDropsThePageCacheIsSlower(t *testing.T) {
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "assay-runner")); err != nil {
		t.Skipf("%v: make bin/assay-runner builds it, as make test does", err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "data")
	content := make([]byte, 64<<20)
	_, _ = rand.Read(content)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	reads, drops := "cat "+file+" >/dev/null", "; dd if="+file+" iflag=nocache count=0 status=none"
	for name, commands := range map[string][]string{
		"two commands": {reads, reads + drops}, "three commands": {reads, reads + drops, "exec " + reads},
	} {
		t.Run(name, func(t *testing.T) {
			out, log, err := assay(t, append([]string{"bench", "--shell", "--bin-dir", bin, "--cpus", "1", "--blocks", "10", "--out",
				filepath.Join(t.TempDir(), "ledger"), "--name", strings.Join([]string{"reads", "drops", "again"}[:len(commands)], ",")},
				commands...)...)
			if err != nil || strings.Contains(out, "verdict: Go") || strings.Contains(out, "\nGo  ") {
				t.Errorf("%v\n%s\n%s", err, out, log)
			}
			if !strings.Contains(out, "NoGo  drops takes") {
				t.Logf("the drop of the cache is not decided here:\n%s", out)
			}
		})
	}
}

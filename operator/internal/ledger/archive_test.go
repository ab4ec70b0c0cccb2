package ledger

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// inFolder puts objects into a folder of their own.
func inFolder(t *testing.T, objects map[string]string) Store {
	t.Helper()
	store, err := Open(t.Context(), FolderURL(t.TempDir()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range objects {
		if err := store.Create(t.Context(), key, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// archiveOf is the archive of a store, opened.
func archiveOf(t *testing.T, store Store) (raw []byte, opened Store) {
	t.Helper()
	var out bytes.Buffer
	if err := WriteArchive(t.Context(), store, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), openBytes(t, out.Bytes())
}

func openBytes(t *testing.T, raw []byte) Store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run"+ArchiveExtension)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := Open(t.Context(), FolderURL(file), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// A few bytes of zstd are as many names as somebody likes.
func TestNamesOfAnArchiveTakeRoomAsWell(t *testing.T) {
	const most = 1 << 16
	for name, tc := range map[string]struct {
		kind    byte
		entries int
		name    string
		refused bool
	}{
		"some files":          {tar.TypeReg, 10, "", false},
		"many empty files":    {tar.TypeReg, 1000, "", true},
		"many folders":        {tar.TypeDir, 1000, "", true},
		"files of long names": {tar.TypeReg, 10, strings.Repeat("long/", 2000), true},
	} {
		t.Run(name, func(t *testing.T) {
			var raw bytes.Buffer
			compressed, err := zstd.NewWriter(&raw)
			if err != nil {
				t.Fatal(err)
			}
			out := tar.NewWriter(compressed)
			for i := range tc.entries {
				if err := out.WriteHeader(&tar.Header{Typeflag: tc.kind, Name: fmt.Sprint(tc.name, i), Mode: 0o444}); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(out.Close(), compressed.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := readArchive(&raw, most); errors.Is(err, ErrTooLarge) != tc.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func contents(t *testing.T, store Store) map[string]string {
	t.Helper()
	keys, err := store.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, key := range keys {
		data, err := store.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		out[key] = string(data)
	}
	return out
}

func TestAnArchiveHasAllThatAVerdictRestsOnAndWhatIsMadeOfItIsLeftOut(t *testing.T) {
	kept := map[string]string{
		ExperimentKey: "{}", "history.json": "{}", WaveKey(0): "wave", WaveKey(1): "", "leases/node-a-1.json": "lease",
		"leases/node-a-1.end.json": "end", AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"): "attempt",
		AttemptKey("w000-b0001", "pod", "w000-b0001-s00002"): strings.Repeat("long ", 100_000),
		StartedKey("w000-b0001", "pod", "w000-b0001-s00003"): "started", ProblemKey("experiment.json"): "problem",
		AnalysisKey(0): "analysis", SealKey(0): "seal", "other": "other",
	}
	made := map[string]string{
		ReportKey(0): "report", HTMLKey(0): "page", TableKey(0): "table", ParquetKey(0): "parquet", OwnTableKey(0, "document", "csv"): "own",
	}
	whole := maps.Clone(kept)
	maps.Copy(whole, made)
	raw, opened := archiveOf(t, inFolder(t, whole))
	if diff := cmp.Diff(kept, contents(t, opened)); diff != "" {
		t.Errorf("the archive differs from what was kept:\n%s", diff)
	}
	if err := opened.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if again, err := Open(t.Context(), opened.URL(), Options{}); err != nil || len(contents(t, again)) != len(kept) {
		t.Errorf("its own URL %s does not open it: %v", opened.URL(), err)
	}
	t.Run("the same objects give the same bytes", func(t *testing.T) {
		for _, store := range []Store{inFolder(t, whole), opened} {
			if again, _ := archiveOf(t, store); !bytes.Equal(again, raw) {
				t.Errorf("%d bytes in place of the same %d", len(again), len(raw))
			}
		}
	})
	t.Run("keys are found as in a folder", func(t *testing.T) {
		folder := inFolder(t, kept)
		for _, prefix := range []string{"", "attempts/", "attempts/w0", "waves/000", "x", "experiment.json"} {
			for _, after := range []string{"", "attempts/w000-b0001/pod/w000-b0001-s00001.json", "waves/", "zzz"} {
				want, _, err := folder.Page(t.Context(), prefix, after)
				got, more, archiveErr := opened.Page(t.Context(), prefix, after)
				if err != nil || archiveErr != nil || more || !slices.Equal(got, want) {
					t.Errorf("%q after %q: got %q, want %q (%v, %v)", prefix, after, got, want, err, archiveErr)
				}
			}
		}
	})
	t.Run("it is only read from", func(t *testing.T) {
		update := func(old []byte) ([]byte, error) { return old, nil }
		for name, err := range map[string]error{
			"create":  opened.Create(t.Context(), "new", nil),
			"replace": opened.Replace(t.Context(), ReportKey(0), nil),
			"update":  opened.Update(t.Context(), "other", update),
		} {
			if err == nil || !strings.Contains(err.Error(), ": read only: ") || !strings.Contains(err.Error(), "tar -xf") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("who changes what was read changes nothing in it", func(t *testing.T) {
		data, err := opened.Get(t.Context(), ExperimentKey)
		if err != nil {
			t.Fatal(err)
		}
		data[0] = '!'
		if again, err := opened.Get(t.Context(), ExperimentKey); err != nil || string(again) != "{}" {
			t.Errorf("got %q, %v", again, err)
		}
	})
	for name, tc := range map[string]struct {
		key  string
		want error
	}{
		"an object that is not there":   {"nothing", ErrNotFound},
		"an object that was left out":   {HTMLKey(0), ErrNotFound},
		"a key that is no clean path":   {"../" + ExperimentKey, nil},
		"the folder that an object has": {"waves", ErrNotFound},
	} {
		if _, err := opened.Get(t.Context(), tc.key); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever keys and objects a ledger has, its archive has the same.
func TestAnyLedgerComesOutOfItsArchive(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 9))
	for range 30 {
		objects := map[string]string{}
		for range 1 + random.IntN(12) {
			var name strings.Builder
			for i := range 1 + random.IntN(4) {
				if i > 0 {
					name.WriteByte('/')
				}
				// Longer than what a tar's header has room for, and other alphabets.
				word := []string{"a", "é/ü", strings.Repeat("n", 60), "w y+z%", "日本"}[random.IntN(5)]
				name.WriteString(strings.ReplaceAll(word, "/", "-") + string(rune('a'+random.IntN(26))))
			}
			data := make([]byte, random.IntN(3000))
			for i := range data {
				data[i] = byte(random.IntN(256))
			}
			objects["attempts/"+name.String()+".json"] = string(data)
		}
		_, opened := archiveOf(t, inFolder(t, objects))
		if diff := cmp.Diff(objects, contents(t, opened)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// overwritten is a store in which one attempt was written over.
type overwritten struct {
	Store
	key string
}

func (o overwritten) Firsts(context.Context, string) (map[string]string, error) {
	return map[string]string{o.key: "1"}, nil
}

func (o overwritten) GetVersion(ctx context.Context, key, _ string) ([]byte, error) {
	return o.Get(ctx, key)
}

func TestALedgerThatWasWrittenOverIsNotArchived(t *testing.T) {
	key := AttemptKey("w000-b0001", "pod", "w000-b0001-s00001")
	store := overwritten{inFolder(t, map[string]string{ExperimentKey: "{}", key: "second"}), key}
	if err := WriteArchive(t.Context(), store, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), key+" (written over)") {
		t.Errorf("got %v", err)
	}
}

// rewritten is a store that still has what was written first.
type rewritten struct {
	overwritten
	first string
}

func (r rewritten) GetVersion(context.Context, string, string) ([]byte, error) {
	return []byte(r.first), nil
}

func TestAttemptsAreGivenOutAsTheyCount(t *testing.T) {
	one, two := AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"), AttemptKey("w000-b0001", "pod", "w000-b0001-s00002")
	folder := inFolder(t, map[string]string{ExperimentKey: "{}", one: "second", two: "only", "attempts/beside.json": "no JSON"})
	for _, left := range []string{"attempts/", "attempts/w000-b0001/pod//w000-b0001-s00003.json"} {
		var got []string
		store := littered{folder, AttemptsPrefix, left}
		err := EachAttempt(t.Context(), struct {
			Store
			Versioned
		}{store, rewritten{overwritten{folder, one}, "first"}}, func(_ string, raw []byte) error {
			got = append(got, string(raw))
			return nil
		})
		if diff := cmp.Diff([]string{"first", "only"}, got); err != nil || diff != "" {
			t.Errorf("beside %q: %v\n%s", left, err, diff)
		}
	}
}

func compressed(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	to, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarred(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for _, header := range entries {
		data := []byte(header.Linkname)
		if header.Typeflag == tar.TypeReg {
			header.Size, header.Linkname = int64(len(data)), ""
		}
		if err := to.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := to.Write(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed(t, out.Bytes())
}

// file is an entry with contents.
func file(name, data string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: data, Mode: 0o644}
}

func TestAnArchiveOfTarIsReadAndABrokenOneIsNamed(t *testing.T) {
	good := tarred(t, file(ExperimentKey, "{}"), file(WaveKey(0), "wave"))
	huge := tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: maxObjectBytes + 1, Format: tar.FormatPAX}
	var claimed bytes.Buffer
	if err := tar.NewWriter(&claimed).WriteHeader(&huge); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		raw  []byte
		says string
	}{
		"as tar makes it in the folder": {
			tarred(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}, file("./"+ExperimentKey, "{}"),
				tar.Header{Typeflag: tar.TypeDir, Name: "./waves/"}, file("./"+WaveKey(0), "wave")), "",
		},
		"one of ours":                  {good, ""},
		"nothing":                      {nil, "holds no object"},
		"something else":               {[]byte("PK\x03\x04 and so on, a file that somebody renamed"), "magic number"},
		"a tar that is not compressed": {claimed.Bytes(), "magic number"},
		"half of one":                  {good[:len(good)/2], "unexpected EOF"},
		"a tar of nothing":             {tarred(t), "holds no object"},
		"no tar inside":                {compressed(t, bytes.Repeat([]byte("x"), 2000)), "invalid tar header"},
		"a key outside of it":          {tarred(t, file("../"+ExperimentKey, "{}")), `key "../experiment.json" is not a clean relative path`},
		"a key with a root":            {tarred(t, file("/etc/passwd", "x")), `key "/etc/passwd" is not a clean relative path`},
		"a link":                       {tarred(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"}), `invalid entry "a"`},
		"an object twice":              {tarred(t, file("a", "1"), file("./a", "2")), `invalid entry "./a"`},
		"an object that is too large":  {compressed(t, claimed.Bytes()), "big is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			err := openBytes(t, tc.raw).Check(t.Context())
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "run"+ArchiveExtension) {
				t.Errorf("got %v, want it to name the file and say %q", err, tc.says)
			}
		})
	}
	missing, err := Open(t.Context(), "file:///no/such/run"+ArchiveExtension, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Check(t.Context()); !errors.Is(err, ErrNoBucket) {
		t.Errorf("an archive that is not there: %v", err)
	}
}

func FuzzArchive(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, bytesOf := range [][]byte{raw, compressed(t, raw)} {
			objects, err := readArchive(bytes.NewReader(bytesOf), maxArchiveBytes)
			if err != nil {
				continue
			}
			for key := range objects {
				if err := checkKey(key); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Whoever measures in a namespace, and some tools, leave keys in a bucket that no store is asked for. They keep nobody from the archive.
func TestAKeyThatIsNoPathKeepsNobodyFromTheArchive(t *testing.T) {
	objects := map[string]string{ExperimentKey: "{}", AttemptKey("w000-b0001", "pod", "w000-b0001-s00001"): "only"}
	folder := inFolder(t, objects)
	for _, key := range []string{"", "attempts/", "waves/", "attempts/a\nb.json", "attempts//a.json"} {
		_, opened := archiveOf(t, littered{folder, "", key})
		if diff := cmp.Diff(objects, contents(t, opened)); diff != "" {
			t.Errorf("beside %q: %s", key, diff)
		}
	}
}

package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"assay.dev/assay/operator/internal/store/storetest"
)

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
	good := tarred(t, file("experiment.json", "{}"), file("waves/000/wave.json", "wave"))
	huge := tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: MaxObjectBytes + 1, Format: tar.FormatPAX}
	var claimed bytes.Buffer
	if err := tar.NewWriter(&claimed).WriteHeader(&huge); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		raw  []byte
		says string
	}{
		"as tar makes it in the folder": {
			tarred(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}, file("./experiment.json", "{}"),
				tar.Header{Typeflag: tar.TypeDir, Name: "./waves/"}, file("./waves/000/wave.json", "wave")), "",
		},
		"one of ours":                  {good, ""},
		"nothing":                      {nil, "holds no object"},
		"something else":               {[]byte("PK\x03\x04 and so on, a file that somebody renamed"), "magic number"},
		"a tar that is not compressed": {claimed.Bytes(), "magic number"},
		"half of one":                  {good[:len(good)/2], "unexpected EOF"},
		"a tar of nothing":             {tarred(t), "holds no object"},
		"no tar inside":                {compressed(t, bytes.Repeat([]byte("x"), 2000)), "invalid tar header"},
		"a key outside of it":          {tarred(t, file("../experiment.json", "{}")), `key "../experiment.json" is not a clean relative path`},
		"a key with a root":            {tarred(t, file("/etc/passwd", "x")), `key "/etc/passwd" is not a clean relative path`},
		"a link":                       {tarred(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"}), `invalid entry "a"`},
		"an object twice":              {tarred(t, file("a", "1"), file("./a", "2")), `invalid entry "./a"`},
		"an object that is too large":  {compressed(t, claimed.Bytes()), "big is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := Open(t.Context(), storetest.ArchiveFile(t, tc.raw), Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = store.Check(t.Context())
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
				if err := CheckKey(key); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

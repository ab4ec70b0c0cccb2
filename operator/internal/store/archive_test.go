package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"assay.dev/assay/operator/test/storetest"
)

// A few bytes of zstd can decompress to any number of names.
func TestReadArchive_NamesCountTowardsTheBound(t *testing.T) {
	const most = 1 << 16
	for name, tc := range map[string]struct {
		kind    byte
		entries int
		name    string
		refused bool
	}{
		"some files":            {tar.TypeReg, 10, "", false},
		"many empty files":      {tar.TypeReg, 1000, "", true},
		"many folders":          {tar.TypeDir, 1000, "", true},
		"files with long names": {tar.TypeReg, 10, strings.Repeat("long/", 2000), true},
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
			if _, err := readArchive(bytes.NewReader(raw.Bytes()), most); errors.Is(err, ErrTooLarge) != tc.refused {
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

func TestReadArchive_ForeignAndBrokenFiles(t *testing.T) {
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
		"written by tar in the folder": {
			tarred(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}, file("./experiment.json", "{}"),
				tar.Header{Typeflag: tar.TypeDir, Name: "./waves/"}, file("./waves/000/wave.json", "wave")), "",
		},
		"written by Assay":             {good, ""},
		"nothing":                      {nil, "contains no object"},
		"a zip file":                   {[]byte("PK\x03\x04 and more, with the wrong extension"), "magic number"},
		"an uncompressed tar":          {claimed.Bytes(), "magic number"},
		"a truncated archive":          {good[:len(good)/2], "unexpected EOF"},
		"an empty tar":                 {tarred(t), "contains no object"},
		"zstd without a tar":           {compressed(t, bytes.Repeat([]byte("x"), 2000)), "invalid tar header"},
		"a key outside of the archive": {tarred(t, file("../experiment.json", "{}")), `key "../experiment.json" is not a clean relative path`},
		"an absolute key":              {tarred(t, file("/etc/passwd", "x")), `key "/etc/passwd" is not a clean relative path`},
		"a link":                       {tarred(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"}), `invalid entry "a"`},
		"a duplicate object":           {tarred(t, file("a", "1"), file("./a", "2")), `invalid entry "./a"`},
		"an oversized object":          {compressed(t, claimed.Bytes()), "big is too large"},
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
				t.Errorf("got %v, want an error that names the file and contains %q", err, tc.says)
			}
		})
	}
	missing, err := Open(t.Context(), "file:///no/such/run"+ArchiveExtension, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Check(t.Context()); !errors.Is(err, ErrNoBucket) {
		t.Errorf("a missing archive: %v", err)
	}
}

// An archive of 200 KB can decompress to two gigabytes. It is refused before its objects are held, in a time that its size bounds.
func TestOpenArchive_ExpandingFileIsRefusedInLittleMemory(t *testing.T) {
	var raw bytes.Buffer
	to, err := zstd.NewWriter(&raw)
	if err != nil {
		t.Fatal(err)
	}
	out := tar.NewWriter(to)
	zeros := make([]byte, 16<<20)
	for i := range 24 {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Size: int64(len(zeros)), Mode: 0o444}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(t.Context(), storetest.ArchiveFile(t, raw.Bytes()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = opened.Check(t.Context())
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "tar -xf") {
		t.Errorf("got %v, want that it is too large, with the remedy", err)
	}
	if took := int64(after.TotalAlloc - before.TotalAlloc); took > 32<<20 {
		t.Errorf("refusing an archive of %d KiB allocates %d MiB", raw.Len()>>10, took>>20)
	}
}

func TestMostOf_FollowsSizeAndMemory(t *testing.T) {
	const large = int64(1) << 40
	for name, tc := range map[string]struct{ size, available, want int64 }{
		"a small archive":                   {218 << 10, large, 64<<20 + 200*218<<10},
		"a large archive":                   {1 << 30, large, 2 << 30},
		"a large archive, little memory":    {1 << 30, 1 << 30, 256 << 20},
		"a small archive, no memory at all": {218 << 10, 0, 0},
		"a size beyond any file":            {math.MaxInt64, large, 2 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mostOf(tc.size, tc.available); got != tc.want {
				t.Errorf("%d bytes, want %d", got, tc.want)
			}
		})
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

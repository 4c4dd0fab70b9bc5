package builder_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/problem"
)

// entry is an entry of an archive that a test makes.
type entry struct {
	name, content string
	change        func(*zip.FileHeader)
}

func mode(m fs.FileMode) func(*zip.FileHeader) {
	return func(h *zip.FileHeader) { h.SetMode(m) }
}

// pack writes an archive as other programs do: compressed, with a descriptor behind each entry.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.change != nil {
			e.change(header)
		}
		entry, err := w.CreateHeader(header)
		if err == nil && e.content != "" {
			_, err = entry.Write([]byte(e.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const plain = "---\nname: a\ndescription: Does something.\n---\nDo it.\n"

func TestAnArchiveThatIsNotSafeIsRefusedAsAWhole(t *testing.T) {
	good := entry{name: "a.md", content: plain}
	lying := pack(t, good, entry{name: "skills/x/SKILL.md", content: strings.Repeat("x", 5000)})
	at := bytes.Index(lying, []byte("PK\x01\x02"))
	at += 46 + len("a.md") // the second entry of the directory
	at += bytes.Index(lying[at:], []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(lying[at+24:], 10) // it claims to unpack to ten bytes
	utf16le := "\xff\xfe"
	for _, unit := range utf16.Encode([]rune(plain)) {
		utf16le += string([]byte{byte(unit), byte(unit >> 8)})
	}
	cases := map[string]struct {
		archive []byte
		want    []string
	}{
		"a path that climbs":               {pack(t, good, entry{name: "../x"}), []string{catalog.CodePathUnsafe}},
		"a path that climbs in the middle": {pack(t, good, entry{name: "skills/../../x"}), []string{catalog.CodePathUnsafe}},
		"an absolute path":                 {pack(t, good, entry{name: "/etc/passwd"}), []string{catalog.CodePathUnsafe}},
		"a drive of Windows":               {pack(t, good, entry{name: `C:\x`}), []string{catalog.CodePathUnsafe}},
		"a backslash":                      {pack(t, good, entry{name: `..\x`}), []string{catalog.CodePathUnsafe}},
		"a NUL":                            {pack(t, good, entry{name: "a\x00.md"}), []string{catalog.CodePathUnsafe}},
		"a control character":              {pack(t, good, entry{name: "a\n.md"}), []string{catalog.CodePathUnsafe}},
		"an empty part":                    {pack(t, good, entry{name: "skills//x/SKILL.md"}), []string{catalog.CodePathUnsafe}},
		"a dot at the end":                 {pack(t, good, entry{name: "skills/x./SKILL.md"}), []string{catalog.CodePathUnsafe}},
		"a folder that climbs":             {pack(t, good, entry{name: "../out/"}), []string{catalog.CodePathUnsafe}},
		"a link":                           {pack(t, good, entry{name: "skills/x", content: "/etc/passwd", change: mode(fs.ModeSymlink | 0o777)}), []string{builder.CodeZipUnsafe}},
		"a device":                         {pack(t, good, entry{name: "null", change: mode(fs.ModeDevice | 0o666)}), []string{builder.CodeZipUnsafe}},
		"a pipe":                           {pack(t, good, entry{name: "pipe", change: mode(fs.ModeNamedPipe | 0o666)}), []string{builder.CodeZipUnsafe}},
		"an encrypted entry":               {pack(t, good, entry{name: "b", content: "x", change: func(h *zip.FileHeader) { h.Flags |= 1 }}), []string{builder.CodeZipUnsafe}},
		"a name in another encoding":       {pack(t, good, entry{name: "b\xe4.md", content: "x", change: func(h *zip.FileHeader) { h.NonUTF8 = true }}), []string{builder.CodeZipUnsafe}},
		"one name twice":                   {pack(t, good, good), []string{catalog.CodePathUnsafe}},
		"names that differ in case":        {pack(t, good, entry{name: "A.md", content: plain}), []string{catalog.CodePathUnsafe}},
		"names that differ in folding":     {pack(t, good, entry{name: "skills/straße/SKILL.md", content: "x"}, entry{name: "skills/STRASSE/SKILL.md", content: "x"}), []string{catalog.CodePathUnsafe}},
		"names that differ in normal form": {pack(t, good, entry{name: "skills/\u00e9/SKILL.md", content: "x"}, entry{name: "skills/e\u0301/SKILL.md", content: "x"}), []string{catalog.CodePathUnsafe}},
		"a bomb by its ratio":              {pack(t, good, entry{name: "b.md", content: strings.Repeat("0", 1<<20)}), []string{builder.CodeZipUnsafe}},
		"a bomb by its size":               {pack(t, good, entry{name: "b.md", content: strings.Repeat("0", 30<<20)}), []string{builder.CodeZipTooBig}},
		"a bomb by many sizes":             {pack(t, slices.Repeat([]entry{{name: "b.md", content: strings.Repeat("0", 3<<20)}}, 4)...), []string{builder.CodeZipUnsafe, builder.CodeZipUnsafe, builder.CodeZipTooBig}},
		"too many entries":                 {pack(t, slices.Repeat([]entry{{name: "x"}}, builder.MaxEntries+1)...), []string{builder.CodeZipTooBig}},
		"a size that lies":                 {lying, []string{builder.CodeZipInvalid}},
		"an archive that is too large":     {bytes.Repeat([]byte{1}, builder.MaxArchive+1), []string{builder.CodeZipTooBig}},
		"no archive":                       {[]byte("PK no archive"), []string{builder.CodeZipInvalid}},
		"an empty archive":                 {pack(t), []string{catalog.CodeFileMissing}},
		"several faults":                   {pack(t, entry{name: "../x"}, entry{name: "/y"}, entry{name: "l", change: mode(fs.ModeSymlink)}, good, good), []string{catalog.CodePathUnsafe, catalog.CodePathUnsafe, builder.CodeZipUnsafe, catalog.CodePathUnsafe}},
		"a file in UTF-16":                 {pack(t, entry{name: "a.md", content: utf16le}), []string{catalog.CodeTextInvalid}},
		"a file in Latin-1":                {pack(t, entry{name: "a.md", content: strings.Replace(plain, "something", "\xe4rger", 1)}), []string{catalog.CodeTextInvalid}},
		"a file with a NUL":                {pack(t, entry{name: "a.md", content: plain + "\x00"}), []string{catalog.CodeTextInvalid}},
		"two agents":                       {pack(t, good, entry{name: "b.md", content: strings.Replace(plain, "name: a", "name: b", 1)}), []string{catalog.CodeFileUnexpected}},
		"a program":                        {pack(t, good, entry{name: "skills/x/run.sh", content: "rm"}), []string{catalog.CodeFileUnexpected}},
	}
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		for name, c := range cases {
			_, err := f.Import(t.Context(), tenant, builder.ImportRequest{Archive: c.archive})
			got := codes(err)
			slices.Sort(got)
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), got); diff != "" {
				t.Errorf("%s: %s%v", name, diff, err)
			}
			for _, p := range problem.Of(err) {
				if p.Message == "" || strings.Contains(p.Path, "\xe4") {
					t.Errorf("%s: %+v", name, p)
				}
			}
		}
		if agents, err := f.List(t.Context(), tenant); err != nil || len(agents) != 5 {
			t.Errorf("something was kept: %d agents, %v", len(agents), err)
		}
	})
}

func TestAnArchiveThatIsOddButSafeIsAccepted(t *testing.T) {
	cases := map[string][]entry{
		"windows line ends":     {{name: "a.md", content: strings.ReplaceAll(plain, "\n", "\r\n")}},
		"a byte order mark":     {{name: "a.md", content: "\ufeff" + plain}},
		"blanks at the fences":  {{name: "a.md", content: strings.ReplaceAll(plain, "---\n", "---  \n")}},
		"folders as entries":    {{name: "skills/"}, {name: "skills/x/"}, {name: "a.md", content: plain}, {name: "skills/x/SKILL.md", content: skillFile("x", "y\n")}},
		"one folder around all": {{name: "pack-a/"}, {name: "pack-a/a.md", content: plain}, {name: "pack-a/skills/x/SKILL.md", content: skillFile("x", "y\n")}},
		"litter of a system":    {{name: "a.md", content: plain}, {name: "__MACOSX/._a.md", content: "\x00"}, {name: ".DS_Store", content: "\x00"}},
		"not compressed":        {{name: "a.md", content: plain, change: func(h *zip.FileHeader) { h.Method = zip.Store }}},
		"entries in any order":  {{name: "skills/x/SKILL.md", content: skillFile("x", "y\n")}, {name: "a.md", content: plain}},
	}
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		for name, entries := range cases {
			imported, err := f.Import(t.Context(), tenant, builder.ImportRequest{Archive: pack(t, entries...), Replace: true})
			if err != nil || len(imported.Agents) != 1 || imported.Agents[0].Name != "a" {
				t.Errorf("%s: %+v, %v", name, imported, err)
				continue
			}
			ignored := slices.DeleteFunc(codes(imported.Remarks), func(c string) bool { return c != builder.CodeIgnored })
			if want := strings.Count(name, "litter") * 2; len(ignored) != want {
				t.Errorf("%s: remarks %v", name, imported.Remarks)
			}
			if r := f.resolve(t, "a", 0); strings.TrimSpace(r.Job.Agent.Instructions) != "Do it." {
				t.Errorf("%s: instructions %q", name, r.Job.Agent.Instructions)
			}
		}
	})
}

func TestAListOfFilesHasTheSameTraps(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		_, err := f.Import(t.Context(), tenant, builder.ImportRequest{Files: []builder.File{
			{Path: "a.md", Content: []byte(plain)}, {Path: "a.md", Content: []byte(plain)}, {Path: "../b", Content: nil}, {Path: "\xff.md", Content: nil}}})
		if diff := cmp.Diff([]string{catalog.CodePathUnsafe, catalog.CodePathUnsafe, catalog.CodePathUnsafe}, codes(err)); diff != "" {
			t.Error(diff)
		}
		if imported, err := f.Import(t.Context(), tenant, builder.ImportRequest{Files: []builder.File{{Path: "a.md", Content: []byte(plain)}}}); err != nil || len(imported.Agents) != 1 {
			t.Errorf("%+v, %v", imported, err)
		}
	})
}

func TestAnArchiveComesAsBase64(t *testing.T) {
	t.Parallel()
	data := pack(t, entry{name: "a.md", content: plain})
	text := base64.StdEncoding.EncodeToString(data)
	got, err := builder.DecodeArchive(text[:40] + "\r\n" + text[40:])
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for name, text := range map[string]string{"other letters": "*" + text[1:], "cut": text[:len(text)-3], "huge": strings.Repeat("A", 8<<20)} {
		if _, err := builder.DecodeArchive(text); len(problem.Of(err)) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnImportedNumberIsKeptWhereItCanBe(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		numbered := func(n int64) builder.ImportRequest {
			text := strings.Replace(plain, "---\nname", fmt.Sprintf("---\nversion: %d\nname", n), 1)
			return builder.ImportRequest{Files: []builder.File{{Path: "a.md", Content: []byte(text)}}, Replace: true}
		}
		for _, c := range []struct{ given, want int64 }{{7, 7}, {3, 8}, {8, 9}, {12, 12}, {1 << 40, 13}} {
			imported, err := f.Import(t.Context(), tenant, numbered(c.given))
			if err != nil {
				t.Fatal(err)
			}
			saved := imported.Agents[0]
			if saved.Version != c.want {
				t.Errorf("number %d was kept as %d, want %d", c.given, saved.Version, c.want)
			}
			if replaced := slices.Contains(codes(saved.Remarks), builder.CodeVersionKept); replaced != (c.given != c.want) {
				t.Errorf("number %d: remarks %v", c.given, saved.Remarks)
			}
		}
		request := numbered(99)
		request.Replace = false
		_, err := f.Import(t.Context(), tenant, request)
		wantError(t, err, store.ErrExists)
		builtIn := builder.ImportRequest{Files: []builder.File{{Path: "risk.md", Content: agent("risk")["risk.md"]}}, Replace: true}
		_, err = f.Import(t.Context(), tenant, builtIn)
		if diff := cmp.Diff([]string{catalog.CodeNameReserved}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnExportIsTheVersionThatWasAskedFor(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("a", "thinking: low"))
		if _, err := f.Save(t.Context(), tenant, "a", builder.Draft{Files: agent("a", "thinking: high")}, builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		for version, want := range map[int64]string{0: "high", 1: "low", 2: "high"} {
			exported, err := f.Export(t.Context(), tenant, "a", version, "")
			if err != nil {
				t.Fatal(err)
			}
			files, problems := builder.ReadArchive(exported.Archive)
			if problems != nil || len(files) != 1 || !strings.Contains(string(files[0].Content), "thinking: "+want) {
				t.Errorf("version %d: %v, %v", version, files, problems)
			}
			number := max(version, 1)
			if version == 0 {
				number = 2
			}
			if exported.Name != fmt.Sprintf("a-v%d.zip", number) || !strings.Contains(string(files[0].Content), fmt.Sprintf("version: %d\n", number)) {
				t.Errorf("version %d is called %s", version, exported.Name)
			}
		}
		if exported, err := f.Export(t.Context(), tenant, "inventory", 0, ""); err != nil || exported.Name != "inventory-v1.zip" {
			t.Errorf("%+v, %v", exported, err)
		}
		if _, err := f.Export(t.Context(), tenant, "a", 0, "docx"); len(problem.Of(err)) != 1 {
			t.Errorf("an unknown format: %v", err)
		}
	})
}

func TestAnArchiveHasNothingOfThePlaceAndTheTime(t *testing.T) {
	t.Parallel()
	files := builder.Files{"b.md": []byte("x"), "a.md": []byte("yy"), "skills/s/SKILL.md": nil}
	first, err := builder.WriteArchive(files)
	if err != nil {
		t.Fatal(err)
	}
	// The identity of the bytes is fixed, so that a change of them is seen.
	if sum := crc32.ChecksumIEEE(first); sum != wantArchiveSum {
		t.Errorf("the archive has the sum %#x", sum)
	}
	r, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a.md", "b.md", "skills/s/SKILL.md"} {
		e := r.File[i]
		if e.Name != name || e.Method != zip.Store || e.Flags&0x8 != 0 || e.Modified.Year() != 1980 {
			t.Errorf("entry %d is %+v", i, e.FileHeader)
		}
	}
}

const wantArchiveSum = 0xaf43c9b8

func FuzzReadArchive(f *testing.F) {
	f.Add(pack(f, entry{name: "a.md", content: plain}))
	f.Add(pack(f, entry{name: "../x"}, entry{name: "l", change: mode(fs.ModeSymlink)}))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, data []byte) {
		files, problems := builder.ReadArchive(data)
		total := 0
		for _, file := range files {
			total += len(file.Content)
		}
		if total > builder.MaxUnpacked || len(files) > builder.MaxEntries {
			t.Errorf("%d files with %d bytes", len(files), total)
		}
		for _, p := range problems {
			if p.Message == "" || p.Code == "" {
				t.Errorf("a problem without words: %+v", p)
			}
		}
	})
}

package builder

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/problem"
)

// The limits of an archive.
const (
	// MaxArchive is the size of the file and MaxUnpacked that of all its entries, in bytes; both are counted as they are read,
	// whatever the archive says.
	MaxArchive  = 2 << 20
	MaxUnpacked = 8 << 20
	MaxEntries  = 200
	// maxRatio is how many times larger an entry of more than ratioFrom bytes may be than its packed form.
	maxRatio  = 100
	ratioFrom = 64 << 10
)

// The codes of problems with archives and lists of files, beside those of the package catalog.
const (
	CodeZipUnsafe  = "zip-unsafe"
	CodeZipInvalid = "zip-invalid"
	CodeZipTooBig  = "zip-too-large"
	CodeIgnored    = "file-ignored"
)

// File is one file of an import. A list of them may hold what no directory can: two files of one name.
type File struct {
	Path    string
	Content []byte
}

// DecodeArchive reads an archive from its standard base64 form, in which line breaks may stand.
func DecodeArchive(text string) ([]byte, error) {
	if len(text) > base64.StdEncoding.EncodedLen(MaxArchive)*2 {
		return nil, problem.List{{Code: CodeZipTooBig, Pointer: "/archive", Message: fmt.Sprintf("the archive is larger than %d bytes", MaxArchive)}}.Err("import")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, problem.List{{Code: CodeZipInvalid, Pointer: "/archive", Message: "the archive is not base64: " + err.Error()}}.Err("import")
	}
	return data, nil
}

// ReadArchive reads a ZIP archive and reports everything in it that is not safe to unpack. Nothing is written anywhere.
func ReadArchive(data []byte) ([]File, problem.List) {
	var problems problem.List
	if len(data) > MaxArchive {
		problems.Add(CodeZipTooBig, "", "the archive has %d bytes; at most %d are allowed", len(data), MaxArchive)
		return nil, problems
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are checked one by one
		problems.Add(CodeZipInvalid, "", "the file is not a ZIP archive that can be read: %v", err)
		return nil, problems
	}
	if len(archive.File) > MaxEntries {
		problems.Add(CodeZipTooBig, "", "the archive has %d entries; at most %d are allowed", len(archive.File), MaxEntries)
		return nil, problems
	}
	u := unpacker{left: MaxUnpacked}
	for _, entry := range archive.File {
		u.entry(entry)
	}
	return u.files, u.problems
}

// unpacker reads the entries of an archive.
type unpacker struct {
	files    []File
	problems problem.List
	// left is how many bytes may still come out.
	left int64
}

func (u *unpacker) refuse(name, code, format string, args ...any) {
	u.problems = append(u.problems, problem.Problem{Code: code, Path: strings.ToValidUTF8(name, "\uFFFD"), Message: fmt.Sprintf(format, args...)})
}

func (u *unpacker) entry(entry *zip.File) {
	name, mode := entry.Name, entry.Mode()
	switch {
	case entry.Flags&0x1 != 0:
		u.refuse(name, CodeZipUnsafe, "the entry is encrypted")
		return
	case !utf8.ValidString(name) || entry.NonUTF8 && strings.ContainsFunc(name, func(r rune) bool { return r > '~' }):
		u.refuse(name, CodeZipUnsafe, "the name is not UTF-8")
		return
	case mode.IsDir() && entry.UncompressedSize64 == 0:
		if why := unsafePath(strings.TrimSuffix(name, "/")); why != "" {
			u.refuse(name, catalog.CodePathUnsafe, "%s", why)
		}
		return
	case !mode.IsRegular():
		u.refuse(name, CodeZipUnsafe, "the entry is a %s; an archive may hold regular files only", kindOf(mode.String()))
		return
	}
	if u.left < 0 {
		return // said already
	}
	content, err := u.inflate(entry)
	switch {
	case u.left < 0:
		u.refuse(name, CodeZipTooBig, "the entries have more than %d bytes together", MaxUnpacked)
	case err != nil:
		u.refuse(name, CodeZipInvalid, "the entry cannot be unpacked: %v", err)
	case len(content) > ratioFrom && uint64(len(content)) > maxRatio*max(entry.CompressedSize64, 1):
		u.refuse(name, CodeZipUnsafe, "the entry grows more than %d times when it is unpacked", maxRatio)
	default:
		u.files = append(u.files, File{name, content})
	}
}

// kindOf names a kind of file by the first letter of its mode.
func kindOf(mode string) string {
	switch mode[0] {
	case 'L':
		return "link"
	case 'd':
		return "directory with a content"
	}
	return "special file"
}

// inflate unpacks an entry and counts what comes out. It is not trusted in what it says of its size.
func (u *unpacker) inflate(entry *zip.File) (content []byte, err error) {
	reader, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	content, err = io.ReadAll(io.LimitReader(reader, u.left+1))
	u.left -= int64(len(content))
	return content, err
}

// unsafePath says why a name may not be unpacked, "" for one that may.
func unsafePath(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case strings.ContainsRune(name, 0):
		return "the name holds a NUL"
	case strings.HasPrefix(name, "/"):
		return "the name is absolute"
	case strings.Contains(name, `\`):
		return "the name has a backslash; folders are separated by /"
	case strings.Contains(name, ":"):
		return "the name has a colon, as a drive of Windows has"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "the name holds a control character"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return "the name leaves its folder or is not in its shortest form"
		}
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return "a part of the name ends with a dot or a space, which Windows drops"
		}
	}
	return ""
}

// gather checks the names of a list of files and makes a map of it. What systems leave in archives by themselves is left
// out with a remark.
func gather(files []File) (gathered Files, remarks, problems problem.List) {
	gathered = make(Files, len(files))
	seen := make(map[string]string)
	if len(files) > MaxEntries {
		problems.Add(CodeZipTooBig, "/files", "there are %d files; at most %d are allowed", len(files), MaxEntries)
		return gathered, nil, problems
	}
	total := 0
	for _, f := range files {
		total += len(f.Content)
		shown := strings.ToValidUTF8(f.Path, "\uFFFD")
		why := unsafePath(f.Path)
		if !utf8.ValidString(f.Path) {
			why = "the name is not UTF-8"
		}
		folded := cases.Fold().String(norm.NFC.String(f.Path))
		twin, twice := seen[folded]
		switch {
		case why != "":
			problems = append(problems, problem.Problem{Code: catalog.CodePathUnsafe, Path: shown, Message: why})
		case twice && twin == f.Path:
			problems = append(problems, problem.Problem{Code: catalog.CodePathUnsafe, Path: shown, Message: "the file is there twice"})
		case twice:
			problems = append(problems, problem.Problem{Code: catalog.CodePathUnsafe, Path: shown,
				Message: fmt.Sprintf("the name differs from %q only in case or in how its letters are encoded", twin)})
		case litter(f.Path):
			remarks = append(remarks, problem.Problem{Code: CodeIgnored, Path: shown, Message: "the file belongs to an operating system and was left out"})
		default:
			gathered[f.Path] = f.Content
		}
		seen[folded] = f.Path
	}
	if total > MaxUnpacked {
		problems.Add(CodeZipTooBig, "/files", "the files have %d bytes together; at most %d are allowed", total, MaxUnpacked)
	}
	return gathered, remarks, problems
}

// litter reports whether a file is one that an operating system adds to folders.
func litter(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasPrefix(path, "__MACOSX/") || slices.Contains([]string{".DS_Store", "Thumbs.db", "desktop.ini"}, base)
}

// withoutTop removes the one folder in which everything stands, as archives of a folder have it.
func withoutTop(files Files) Files {
	top := ""
	for path := range files {
		first, _, deeper := strings.Cut(path, "/")
		if !deeper || catalog.IsFolder(first) || strings.HasPrefix(first, ".") || top != "" && top != first {
			return files
		}
		top = first
	}
	bare := make(Files, len(files))
	for path, content := range files {
		bare[strings.TrimPrefix(path, top+"/")] = content
	}
	return bare
}

const (
	// archiveDate is that of every entry: the first of January 1980, the earliest that the format has.
	archiveDate = 1<<5 | 1
	// storeVersion is the version of the format that a reader has to know, 1.0.
	storeVersion = 10
)

// WriteArchive writes files as a ZIP archive whose bytes depend on nothing but the files: entries by name, one time, not
// compressed, since what a compressor makes differs between versions of it.
func WriteArchive(files Files) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		header := &zip.FileHeader{Name: path, Method: zip.Store, CRC32: crc32.ChecksumIEEE(content),
			CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content)), ReaderVersion: storeVersion}
		header.SetMode(0o644)
		//lint:ignore SA1019 a raw entry takes its time from this field alone
		header.ModifiedDate = archiveDate
		entry, err := w.CreateRaw(header)
		if err == nil {
			_, err = entry.Write(content)
		}
		if err != nil {
			return nil, fmt.Errorf("write the archive: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write the archive: %w", err)
	}
	return b.Bytes(), nil
}

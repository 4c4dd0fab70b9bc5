package walk

import "io"

// File is an open regular file. It reads as far as the file's size when it was
// opened, so that a file which grows meanwhile has an end.
type File struct {
	raw  rawFile
	size int64
	left int64
}

// Size returns the size in bytes when the file was opened.
func (f *File) Size() int64 { return f.size }

// Read implements io.Reader. It returns io.EOF along with the last bytes, which
// saves a call for most files.
func (f *File) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, io.EOF
	}
	want := int64(len(p))
	n, err := f.raw.read(p[:min(want, f.left)])
	f.left -= int64(n)
	if err != nil {
		return n, err
	}
	// A regular file gives all that is asked for unless it ends.
	if f.left == 0 || n == 0 {
		f.left = 0
		return n, io.EOF
	}
	return n, nil
}

// Close closes the file.
func (f *File) Close() error { return f.raw.close() }
